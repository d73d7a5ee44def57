#include "reference.hpp"

#include <filesystem>

using namespace kvo::test;

namespace {

void check_shared(const std::string& name, const std::string& file) {
    const std::string path = std::string(KVO_SHARED_DIR) + "/traces/" + file;
    if (!std::filesystem::exists(path)) KVO_SKIP("no " << file << " (KVO_SHARED_DIR)");
    check_trace(name, path);
}

}  // namespace

TEST_CASE("hit counts on the conversation trace equal the reference to the last hit") {
    check_shared("conversation", "mooncake_conversation_trace.jsonl.xz");
}
TEST_CASE("hit counts on the synthetic trace equal the reference to the last hit") {
    check_shared("synthetic", "mooncake_synthetic_trace.jsonl.xz");
}
TEST_CASE("hit counts on the 32-user agent trace equal the reference to the last hit") {
    check_shared("weka32", "weka_agentic_delta.jsonl.xz");
}

// The large traces, where they are at hand.
#include <filesystem>

#include "prefix_replay.hpp"

using namespace kvo::test;

namespace {

void check_shared(const std::string& name, const std::string& file) {
    const std::string path = std::string(KVO_SHARED_DIR) + "/traces/" + file;
    if (!std::filesystem::exists(path)) KVO_SKIP("no " << file << " (KVO_SHARED_DIR)");
    check_prefix_counts(name, path);
}

}  // namespace

TEST_CASE("requests of the conversation trace hit as often as the reference") {
    check_shared("conversation", "mooncake_conversation_trace.jsonl.xz");
}
TEST_CASE("requests of the synthetic trace hit as often as the reference") {
    check_shared("synthetic", "mooncake_synthetic_trace.jsonl.xz");
}
TEST_CASE("requests of the 32-user agent trace hit as often as the reference") {
    check_shared("weka32", "weka_agentic_delta.jsonl.xz");
}

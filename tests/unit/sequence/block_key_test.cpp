// Keys against vectors that another program computed (tests/data/make_key_vectors.py).
#include "sequence/block_key.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace kvo;

namespace {

std::vector<uint8_t> unhex(const std::string& text) {
    std::vector<uint8_t> out;
    for (size_t i = 0; i + 2 <= text.size(); i += 2) {
        out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    }
    return out;
}

std::string hex(const kvo_key_t& key) {
    std::string out;
    for (const uint8_t b : key.bytes) {
        constexpr char kDigits[] = "0123456789abcdef";
        out += kDigits[b >> 4];
        out += kDigits[b & 15];
    }
    return out;
}

}  // namespace

TEST_CASE("Keys are those that another program computes") {
    std::ifstream file(KVO_TEST_DATA_DIR "/key_vectors.json");
    const auto cases = nlohmann::json::parse(file);
    REQUIRE(cases.size() >= 14);
    region memory;
    context_store contexts;
    REQUIRE(memory.map(context_store::bytes_for(1 << 20)));
    contexts.place(memory, 1 << 20);
    for (const auto& one : cases) {
        INFO(one["name"].get<std::string>());
        const auto salt = unhex(one["salt"]), fingerprint = unhex(one["fingerprint"]);
        const auto tokens = one["tokens"].get<std::vector<uint32_t>>();
        const std::string ns_name = one["namespace"];
        const uint32_t block_tokens = one["block_tokens"];
        context_id context = kNoContext;
        if (!salt.empty()) context = contexts.follow(kNoContext, 0, 0, salt);
        for (const auto& extra : one["extras"]) {
            context = contexts.follow(context, extra["begin"], extra["count"], unhex(extra["bytes"]));
            REQUIRE(context != kNoContextRoom);
        }
        key_maker maker;
        kvo_key_t key = maker.root({one["hash_seed"], block_tokens, fingerprint, ns_name, salt});
        uint32_t begin = 0;
        for (const std::string expected : one["keys"]) {
            const kvo_key_t parent = key;
            block_identity block;
            block.parent = &parent;
            block.tokens = std::span(tokens).subspan(begin, block_tokens);
            block.begin = begin;
            block.context = contexts.before(context, begin + block_tokens);
            key = maker.block(block, contexts);
            CHECK(hex(key) == expected);
            begin += block_tokens;
        }
        CHECK(begin + block_tokens > tokens.size());
    }
}

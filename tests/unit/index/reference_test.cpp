#include "reference.hpp"

using namespace kvo::test;

TEST_CASE("hit counts on the mini-swe agent trace equal the reference to the last hit") {
    check_trace("miniswe",
                std::string(KVO_TEST_DATA_DIR) + "/lmcache_agent_miniswe_delta.jsonl.xz");
}

namespace {

// The generator of the golden numbers: the smallest of three draws of a linear congruential
// generator.
struct golden_ids {
    uint64_t x = 42;
    uint32_t draw() {
        x = x * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>((x >> 33) % 4000);
    }
    uint32_t next() {
        const uint32_t a = draw(), b = draw(), c = draw();
        return std::min({a, b, c});
    }
};

struct golden_result {
    uint64_t hits = 0, evictions = 0;
};

// scans: before every access t = 5000 k, 2000 ids that never come back.
golden_result golden_run(kvo_policy_t kind, uint32_t capacity, bool scans) {
    constexpr uint32_t kFirstFresh = 1'000'000, kAccesses = 100'000;
    flat_replay replay(kind, capacity, kFirstFresh + kAccesses);
    golden_ids ids;
    golden_result result;
    uint64_t misses = 0;
    uint32_t fresh = kFirstFresh;
    for (uint32_t t = 0; t < kAccesses; ++t) {
        if (scans && t > 0 && t % 5000 == 0) {
            for (int i = 0; i < 2000; ++i) misses += replay.access(fresh++) ? 0u : 1u;
        }
        const bool hit = replay.access(ids.next());
        result.hits += hit ? 1u : 0u;
        misses += hit ? 0u : 1u;
    }
    result.evictions = misses - capacity;
    return result;
}

}  // namespace

TEST_CASE("the golden generator gives its published first ids") {
    golden_ids ids;
    for (uint32_t expected : {1334u, 1503u, 2710u, 125u, 1388u, 309u, 649u, 2134u, 560u, 2652u}) {
        CHECK(ids.next() == expected);
    }
}

TEST_CASE("LRU equals the golden counts taken from a peer's manager") {
    // Its ARC is not the paper's (new blocks always to T1, ghosts trimmed apart), so only its LRU
    // counts.
    const auto a500 = golden_run(KVO_POLICY_LRU, 500, false);
    CHECK(a500.hits == 21987);
    CHECK(a500.evictions == 77513);
    const auto a1000 = golden_run(KVO_POLICY_LRU, 1000, false);
    CHECK(a1000.hits == 42475);
    CHECK(a1000.evictions == 56525);
    const auto b500 = golden_run(KVO_POLICY_LRU, 500, true);
    CHECK(b500.hits == 20912);
    CHECK(b500.evictions == 116588);
    const auto b1000 = golden_run(KVO_POLICY_LRU, 1000, true);
    CHECK(b1000.hits == 37813);
    CHECK(b1000.evictions == 99187);
}

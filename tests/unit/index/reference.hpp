// Reference hit counts (tests/data/reference_hits.json) against a replay of the same trace.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "replay.hpp"
#include "support/catch.hpp"
#include "trace/trace.hpp"

namespace kvo::test {

inline nlohmann::json reference_hits() {
    std::ifstream in(std::string(KVO_TEST_DATA_DIR) + "/reference_hits.json");
    return nlohmann::json::parse(in);
}

inline kvo_policy_t policy_named(const std::string& name) {
    return name == "ARC" ? KVO_POLICY_ARC : KVO_POLICY_LRU;
}

inline void check_flat(const nlohmann::json& cells, const std::string& policy_name,
                       const trace::sequence& sequence) {
    for (const auto& [capacity, expected] : cells.items()) {
        INFO("flat " << policy_name << " capacity " << capacity);
        flat_replay replay(policy_named(policy_name), static_cast<uint32_t>(std::stoul(capacity)),
                           sequence.info.unique_blocks);
        uint64_t hits = 0;
        for (uint32_t id : sequence.ids) hits += replay.access(id) ? 1u : 0u;
        CHECK(hits == expected.get<uint64_t>());
    }
}

// LRU is checked in both ways. ARC only one key at a time: with whole chains our store keeps a
// call's own blocks from leaving, which the reference does not, so its counts differ under
// pressure, mostly upwards (miniswe at 100 blocks: 37,829 hits instead of 16,767).
inline void check_prefix(const nlohmann::json& cells, const std::string& policy_name,
                         const trace::sequence& sequence) {
    for (const auto& [capacity, expected] : cells.items()) {
        for (bool chained : {false, true}) {
            if (chained && policy_name != "LRU") continue;
            INFO("prefix " << policy_name << " capacity " << capacity << " chained " << chained);
            prefix_replay replay(policy_named(policy_name),
                                 static_cast<uint32_t>(std::stoul(capacity)), chained);
            uint64_t hits = 0;
            for (size_t i = 0; i < sequence.requests.size(); ++i) {
                hits += replay.request(sequence.ids_of(i));
            }
            CHECK(hits == expected.get<uint64_t>());
            if (policy_name == "LRU") CHECK(replay.index().counts().orphaned_total == 0);
        }
    }
}

inline void check_trace(const std::string& name, const std::string& path) {
    trace::sequence sequence;
    const auto error = trace::read_sequence(path, {}, &sequence);
    INFO((error ? error->text : path));
    REQUIRE_FALSE(error);
    const auto reference = reference_hits();
    for (const std::string policy_name : {"LRU", "ARC"}) {
        check_flat(reference["flat"][name][policy_name], policy_name, sequence);
        check_prefix(reference["prefix"][name][policy_name], policy_name, sequence);
    }
}

}  // namespace kvo::test

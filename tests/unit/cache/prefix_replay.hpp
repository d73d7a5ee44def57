// Replays requests through a whole cache, store and match calls as an engine makes them, and
// compares hits with the reference counts (tests/data/reference_hits.json). The device copies at
// once, so that a call is over when it returns.
#pragma once

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "support/cache_fixture.hpp"
#include "trace/trace.hpp"

namespace kvo::test {

inline device_table instant_device() {
    device_table t;
    t.name = "instant";
    t.stream_create = [](void*, void** stream) {
        *stream = stream;
        return KVO_OK;
    };
    t.stream_destroy = [](void*, void*) {};
    t.stream_check = [](void*, void*) { return KVO_OK; };
    t.event_create = [](void*, void** event) {
        *event = event;
        return KVO_OK;
    };
    t.event_destroy = [](void*, void*) {};
    t.event_record = [](void*, void*, void*) { return KVO_OK; };
    t.event_query = [](void*, void*) { return KVO_OK; };
    t.stream_wait = [](void*, void*, void*) { return KVO_OK; };
    t.copy_batch = [](void*, void*, copy_direction, const copy_piece* pieces, uint32_t n,
                      uint32_t* n_queued) {
        for (uint32_t i = 0; i < n; ++i) std::memcpy(pieces[i].dst, pieces[i].src, pieces[i].bytes);
        *n_queued = n;
        return KVO_OK;
    };
    t.driver_code = [](void*) { return 0; };
    return t;
}

class prefix_replay {
public:
    prefix_replay(kvo_policy_t policy, uint32_t blocks)
        : table_(instant_device()),
          f_({.blocks = blocks,
              .n_device_blocks = 8192,
              .part_bytes = {64},
              .adjust =
                  [policy](kvo_config_t* c) {
                      c->policy = static_cast<uint32_t>(policy);
                      c->event_ring = 0;
                      c->max_inflight_blocks = 65536;
                      c->huge_pages = 0;
                  },
              .custom = &table_}),
          ids_(8192) {
        std::iota(ids_.begin(), ids_.end(), 0u);
    }

    // One request as an engine makes it: look for its prefix, take it, store what is new. Hits.
    uint64_t chained(std::span<const uint32_t> blocks) {
        set_keys(blocks);
        kvo_ticket_t ticket{};
        kvo_match_t found{};
        must(f_.c->match({}, keys_, 0, KVO_MATCH_OPTIONS_INIT, {}, &ticket, &found));
        if (ticket.value != 0) must(f_.c->ticket_release(ticket));
        store(keys_, 0);
        return found.n_ready;
    }
    // The textbook order: every block of the request one by one, last to first.
    uint64_t one_by_one(std::span<const uint32_t> blocks) {
        set_keys(blocks);
        kvo_match_t found{};
        must(f_.c->probe({}, keys_, 0, &found));
        for (size_t i = keys_.size(); i-- > 0;)
            store(std::span(keys_).subspan(i, 1), KVO_STORE_UNCHAINED);
        return found.n_ready;
    }
    kvo_stats_t stats() { return f_.stats(); }

private:
    static void must(status s) {
        if (s != KVO_OK) FAIL(status_name(s) << ": " << error_text());
    }
    void set_keys(std::span<const uint32_t> blocks) {
        keys_.clear();
        for (const uint32_t b : blocks) keys_.push_back(f_.key(uint64_t{b} + 1));
        if (ids_.size() < blocks.size()) FAIL("a request of " << blocks.size() << " blocks");
    }
    void store(std::span<const kvo_key_t> keys, uint32_t flags) {
        kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
        o.flags = flags | KVO_OP_DETACHED;
        const kvo_blocks_t list{0, static_cast<uint32_t>(keys.size()), ids_.data()};
        must(f_.c->store({}, keys, nullptr, {&list, 1}, KVO_STREAM_IDLE, o, {}, nullptr, nullptr));
        uint32_t n = 1;
        while (n > 0) {
            must(f_.c->poll(nullptr, 0, 0, &n));
            must(f_.c->pending(&n));
        }
    }

    device_table table_;
    cache_fixture f_;
    std::vector<kvo_key_t> keys_;
    std::vector<uint32_t> ids_;
};

inline void check_prefix_counts(const std::string& name, const std::string& path) {
    trace::sequence sequence;
    const auto error = trace::read_sequence(path, {}, &sequence);
    INFO((error ? error->text : path));
    REQUIRE_FALSE(error);
    std::ifstream in(std::string(KVO_TEST_DATA_DIR) + "/reference_hits.json");
    const auto prefix = nlohmann::json::parse(in)["prefix"][name];
    for (const auto& [policy, cells] : prefix.items()) {
        for (const auto& [capacity, expected] : cells.items()) {
            INFO(name << " prefix " << policy << " capacity " << capacity);
            const bool lru = policy == "LRU";
            prefix_replay replay(lru ? KVO_POLICY_LRU : KVO_POLICY_ARC,
                                 static_cast<uint32_t>(std::stoul(capacity)));
            uint64_t hits = 0;
            for (size_t i = 0; i < sequence.requests.size(); ++i) {
                const auto ids = sequence.ids_of(i);
                hits += lru ? replay.chained(ids) : replay.one_by_one(ids);
            }
            CHECK(hits == expected.get<uint64_t>());
            const kvo_stats_t s = replay.stats();
            CHECK(s.blocks_pinned == 0);
            if (lru) CHECK(s.orphaned_blocks == 0);
            CHECK(s.blocks_resident + s.slots_free == std::stoul(capacity));
        }
    }
}

}  // namespace kvo::test

// How keys of a store or reserve call become entries: what is here is pinned and left alone, what
// is not gets an entry with slots, in chain order, until nothing may leave any more. Keys of the
// call are pinned while it runs, so that a call never evicts its own chain. Used under the cache
// lock, which is let go between stretches of keys.
#pragma once

#include <array>
#include <span>

#include "cache/state.hpp"

namespace kvo {

struct placement_request {
    ns_id ns{};
    std::span<const kvo_key_t> keys;
    const kvo_key_t* parent = nullptr;
    bool parents_held = false;
    bool unchained = false;
    uint32_t groups = 0;  // bit per group that the caller supplies
    identity* who = nullptr;
    uint8_t* verdicts = nullptr;  // null, or one a key
};

// Where taken keys go.
struct placement_sink {
    virtual ~placement_sink() = default;
    virtual bool is_hole(uint32_t i) const = 0;
    // groups: bit per group to be written. False: no record for it; it is given back.
    virtual bool take(uint32_t i, entry_id e, uint32_t groups) = 0;
};

class placement {
public:
    placement(cache::state& s, const placement_request& r, placement_sink& sink)
        : s_(s), r_(r), sink_(sink) {}

    // KVO_E_DROPPED when a purge or reset came in between; what was taken is the sink's to give
    // back.
    status run(locked& lock);
    const kvo_store_result_t& result() const { return result_; }

private:
    bool pin_what_is_here(uint32_t begin, uint32_t end);
    void place(uint32_t begin, uint32_t end);
    kvo_verdict_t place_one(uint32_t i, entry_id e);
    kvo_verdict_t present(uint32_t i, entry_id e);
    kvo_verdict_t take_new(uint32_t i);
    bool take_slots(entry_id e, uint32_t groups, bool into_ready);
    void give_slots(entry_id e, uint32_t groups);
    void find(uint32_t begin, uint32_t end);
    entry_id find_one(const kvo_key_t& key) const;
    entry_id before(uint32_t i) const;
    bool is_right(uint32_t i, entry_id e) const;
    void count(uint32_t i, kvo_verdict_t verdict);
    void unpin_one(entry_id e);
    void unpin_all(locked& lock);
    bool next_stretch(locked& lock);

    cache::state& s_;
    const placement_request& r_;
    placement_sink& sink_;
    kvo_store_result_t result_{};
    uint64_t generation_ = 0;
    uint32_t purges_ = 0;
    uint32_t n_ = 0;                // keys looked at; fewer than asked when there is no room to pin
    entry_id parent_ = kNoEntry;    // of keys[0]
    entry_id previous_ = kNoEntry;  // entry of the key before, if it is here or taken
    kvo_verdict_t stopped_ = KVO_STORE_TAKEN;  // why nothing new is taken any more
    std::array<slot_id, kMaxGroups> near_{};
    id_run pinned_;
    entry_id found_[kKeysPerLock];
};

}  // namespace kvo

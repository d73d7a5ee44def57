// The inside of block_index: its arrays and the steps that several of its calls share.
#pragma once

#include <memory>

#include "base/big_vector.hpp"
#include "index/arc.hpp"
#include "index/key_table.hpp"
#include "index/lineage.hpp"
#include "index/lru.hpp"
#include "index/record.hpp"

namespace kvo {

constexpr uint32_t further_slots(const index_config& c) {
    return c.n_groups > record_side::kSlots ? c.n_groups - record_side::kSlots : 0;
}

struct block_index::state_t {
    state_t(const index_config& c, index_owner& o);

    record& at(entry_id e) { return records[raw(e)]; }
    slot_id& slot(uint32_t i, uint32_t group) {
        if (group < record_side::kSlots) return sides[i].slots[group];
        return more_slots[uint64_t{i} * further_slots(config) + group - record_side::kSlots];
    }

    // f(policy) with the policy's own type, so that the calls of a whole batch are inlined.
    template <typename F>
    void with_order(F f) {
        if (config.policy == KVO_POLICY_ARC) {
            f(static_cast<arc_policy&>(*order));
        } else {
            f(static_cast<lru_policy&>(*order));
        }
    }

    template <bool kTouch, typename Policy>
    void pin_all(Policy& policy, std::span<const entry_id> entries);
    template <typename Policy>
    void unpin_all(Policy& policy, std::span<const entry_id> entries);
    template <typename Policy>
    bool unpin_one(Policy& policy, uint32_t i);
    entry_id ancestor_that_may_leave(uint32_t i) const;

    entry_id take_record(ns_id ns, const kvo_key_t& key);
    void unpublish(
        uint32_t i);  // no key finds it from here on; its children have lost their parent
    void release(uint32_t i);
    void leave(uint32_t i, leave_reason why);  // the policy has let go of it already
    entry_id orphan_victim();
    void prefetch_victims() const;

    index_config config;
    index_owner& owner;
    uint32_t capacity;
    uint32_t n_used = 0;
    uint32_t free = kNil;
    index_counts counts;
    big_vector<record> records;
    big_vector<record_side> sides;
    big_vector<slot_id> more_slots;
    key_table table;
    lineage_rings rings;
    std::unique_ptr<policy> order;
};

constexpr uint32_t kAncestorTries = 256;  // pinned ancestors passed on the way to one with a place

// Were a block placed as the most recent one while only its parent is pinned, it would stay longer
// than what it hangs on.
inline entry_id block_index::state_t::ancestor_that_may_leave(uint32_t i) const {
    for (uint32_t n = 0; n < kAncestorTries; ++n) {
        i = rings.parent(i);
        if (i == kNil || records[i].order.may_leave()) break;
    }
    return i != kNil && records[i].order.may_leave() ? entry_id{i} : kNoEntry;
}

// Blocks of a chain mostly lie next to each other in the order of victims. So both take such a run
// as one: its inner neighbours stay what they are, or are each other, and only its two ends touch
// other records.

template <bool kTouch, typename Policy>
void block_index::state_t::pin_all(Policy& policy, std::span<const entry_id> entries) {
    record* const all = records.data();
    if (entries.size() > 1) {  // what the ends of the batch hang on is mostly not among the entries
        const uint32_t newer = all[raw(entries.front())].order.newer;
        const uint32_t older = all[raw(entries.back())].order.older;
        if (newer != kNil) __builtin_prefetch(&all[newer], 1);
        if (older != kNil) __builtin_prefetch(&all[older], 1);
    }
    uint32_t newly_pinned = 0;
    const auto touch = [&policy](record& r) {
        if constexpr (kTouch) {
            r.reused = true;
            policy.promote(r.order);
        }
    };
    for (size_t k = 0; k < entries.size();) {
        const uint32_t first = raw(entries[k++]);
        record& r = all[first];
        const bool may_leave = r.order.may_leave();
        if (r.order.pins++ == 0) ++newly_pinned;
        auto& victims = policy.victims(r.order.list);
        touch(r);
        if (!may_leave) continue;
        uint32_t last = first;
        for (; k < entries.size(); ++k) {
            record& next = all[raw(entries[k])];
            if (next.order.pins != 0 || next.order.newer != last) break;
            next.order.pins = 1;
            touch(next);
            last = raw(entries[k]);
            ++newly_pinned;
        }
        victims.remove_run(first, last);
    }
    counts.pinned += newly_pinned;
}

template <typename Policy>
void block_index::state_t::unpin_all(Policy& policy, std::span<const entry_id> entries) {
    record* const all = records.data();
    for (size_t k = 0; k < entries.size();) {
        uint32_t last = raw(entries[k++]);
        if (!unpin_one(policy, last)) continue;
        const record* above = &all[last];
        const uint8_t list = above->order.list;
        const uint32_t older = above->order.older;
        const size_t begin = k;
        for (; k < entries.size(); ++k) {
            record& r = all[raw(entries[k])];
            const bool follows =
                r.parent == last && r.parent_stamp == above->stamp && r.order.list == list;
            if (!follows || r.order.pins != 1) break;
            r.order.pins = 0;
            r.order.newer = last;
            last = raw(entries[k]);
            all[r.parent].order.older = last;
            above = &r;
        }
        counts.pinned -= static_cast<uint32_t>(k - begin);
        if (k > begin) policy.victims(list).close_run(last, older);
    }
}

// True when it is among the victims now.
template <typename Policy>
bool block_index::state_t::unpin_one(Policy& policy, uint32_t i) {
    record& r = records[i];
    if (r.order.pins > 1 || r.state != entry_state::ready) {
        if (--r.order.pins > 0) return false;
        --counts.pinned;
        release(i);  // a dead one
        return false;
    }
    --counts.pinned;
    policy.unpin(entry_id{i}, ancestor_that_may_leave(i));
    if (rings.any_aside()) rings.back_from_pins(i);
    return true;
}

}  // namespace kvo

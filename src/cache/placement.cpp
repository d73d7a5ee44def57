#include "cache/placement.hpp"

#include <algorithm>

namespace kvo {

status placement::run(locked& lock) {
    generation_ = s_.generation;
    purges_ = s_.names[r_.ns].purges;
    near_.fill(kNoSlot);
    n_ = static_cast<uint32_t>(r_.keys.size());
    if (r_.parent != nullptr && !r_.unchained) parent_ = find_one(*r_.parent);
    if (parent_ != kNoEntry && r_.who != nullptr && !r_.who->is_parent(parent_)) parent_ = kNoEntry;
    if (parent_ != kNoEntry) s_.index->pin(parent_);

    const bool one_stretch = n_ <= kKeysPerLock;
    status bad = KVO_OK;
    for (uint32_t begin = 0; bad == KVO_OK && begin < n_; begin += kKeysPerLock) {
        if (begin > 0 && !next_stretch(lock)) bad = KVO_E_DROPPED;
        if (bad == KVO_OK && !pin_what_is_here(begin, std::min(n_, begin + kKeysPerLock))) break;
    }
    for (uint32_t begin = 0; bad == KVO_OK && begin < n_; begin += kKeysPerLock) {
        const uint32_t end = std::min(n_, begin + kKeysPerLock);
        if (!one_stretch) {
            if (!next_stretch(lock)) bad = KVO_E_DROPPED;
            if (bad == KVO_OK) find(begin, end);
        }
        if (bad == KVO_OK) place(begin, end);
    }
    for (uint32_t i = n_; i < r_.keys.size(); ++i) count(i, KVO_STORE_NO_RECORD);
    unpin_all(lock);
    if (bad != KVO_OK)
        return fail(bad, "the namespace was purged or the cache reset while this call ran");
    return KVO_OK;
}

bool placement::next_stretch(locked& lock) {
    // The block before stays the record that it is, so that nothing is hung on a stranger.
    const entry_id held = previous_;
    if (held != kNoEntry) s_.index->pin(held);
    lock.unlock();
    lock.lock();
    if (held != kNoEntry) {
        if (!s_.is_live(held)) previous_ = kNoEntry;
        s_.index->unpin(held);
    }
    return s_.generation == generation_ && s_.names[r_.ns].purges == purges_ &&
           s_.check_running() == KVO_OK;
}

void placement::find(uint32_t begin, uint32_t end) {
    s_.index->find(r_.ns, r_.keys.subspan(begin, end - begin), found_);
}

entry_id placement::find_one(const kvo_key_t& key) const {
    entry_id e = kNoEntry;
    s_.index->find(r_.ns, {&key, 1}, {&e, 1});
    return e;
}

// False when the room for pins ended; n_ says how far it went.
bool placement::pin_what_is_here(uint32_t begin, uint32_t end) {
    find(begin, end);
    for (uint32_t i = begin; i < end; ++i) {
        const entry_id e = found_[i - begin];
        if (e == kNoEntry) continue;
        if (!s_.runs.push(pinned_, raw(e))) {
            n_ = i;
            return false;
        }
        s_.index->pin(e);
    }
    return true;
}

void placement::place(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
        // Only this stretch itself can have brought what its look-up did not find.
        entry_id e = found_[i - begin];
        kvo_verdict_t verdict = KVO_STORE_DUPLICATE;
        if (e != kNoEntry && s_.is_live(e)) {
            verdict = place_one(i, e);
        } else if (e = find_one(r_.keys[i]); e != kNoEntry) {
            previous_ = e;
        } else {
            verdict = take_new(i);
        }
        count(i, verdict);
    }
}

// With an exact check: content, and a parent that is the block before.
bool placement::is_right(uint32_t i, entry_id e) const {
    if (r_.who == nullptr) return true;
    if (!r_.who->same(e, i)) return false;
    if (r_.unchained) return true;
    const entry_id expected = i == 0 ? parent_ : previous_;
    return s_.index->parent(e) == expected && !s_.index->is_orphan(e);
}

kvo_verdict_t placement::place_one(uint32_t i, entry_id e) {
    if (is_right(i, e)) return present(i, e);
    if (r_.who->same(e, i) && s_.index->parent(e) == kNoEntry) {
        // Right by itself, but what it hung on is gone: that can't be checked any more. A fresh
        // copy can.
        s_.remove_entry(e, leave_reason::evicted);
        return take_new(i);
    }
    ++s_.counters.identity_mismatches;
    previous_ = kNoEntry;
    return KVO_STORE_ORPHAN;
}

// The block before key i, if it is still one that others can hang on.
entry_id placement::before(uint32_t i) const {
    const entry_id e = i == 0 ? parent_ : previous_;
    return e != kNoEntry && s_.is_live(e) ? e : kNoEntry;
}

kvo_verdict_t placement::present(uint32_t i, entry_id e) {
    const entry_id parent = before(i);
    // An entry whose content is known is never hung anywhere on the word of a key.
    const bool may_link = r_.who == nullptr && !r_.unchained && !s_.is_identified(e);
    if (may_link && parent != kNoEntry && parent != e && s_.index->parent(e) == kNoEntry) {
        s_.index->link(e, parent);
    }
    previous_ = e;
    if (r_.who != nullptr) r_.who->settled(e, i);
    for (uint32_t g = 0; g < s_.groups.size(); ++g) {
        if (is_present(s_.index->slot(e, g))) near_[g] = s_.index->slot(e, g);
    }
    if (s_.index->state(e) != entry_state::ready || s_.is_filling_any(e)) return KVO_STORE_PENDING;
    const uint32_t missing = r_.groups & ~s_.groups_present(e);
    if (missing == 0 || sink_.is_hole(i) || !take_slots(e, missing, true)) return KVO_STORE_PRESENT;
    s_.index->pin(e);
    if (sink_.take(i, e, missing)) return KVO_STORE_TAKEN;
    give_slots(e, missing);
    s_.index->unpin(e);
    return KVO_STORE_PRESENT;
}

kvo_verdict_t placement::take_new(uint32_t i) {
    const entry_id parent = before(i);
    previous_ = kNoEntry;
    if (stopped_ != KVO_STORE_TAKEN) return stopped_;
    auto how = block_index::lineage::root;
    if (!r_.unchained && (i > 0 || r_.parent != nullptr)) {
        how = block_index::lineage::child;
        if (parent == kNoEntry) {
            if (i > 0 || !r_.parents_held) return KVO_STORE_ORPHAN;
            how = block_index::lineage::held;
        }
    }
    if (sink_.is_hole(i)) return KVO_STORE_HOLE;
    // What another call brought since the first walk is not pinned by this one, and no victim either.
    if (parent != kNoEntry) s_.index->pin(parent);
    const entry_id e = s_.index->reserve(r_.ns, r_.keys[i], how, parent);
    if (parent != kNoEntry) s_.index->unpin(parent);
    if (e == kNoEntry || !take_slots(e, r_.groups, false)) {
        if (e != kNoEntry) s_.abandon_entry(e);
        return stopped_ = KVO_STORE_FULL;
    }
    if (r_.who != nullptr && !r_.who->keep(e, i)) {
        s_.abandon_entry(e);
        return stopped_ = KVO_STORE_NO_EXTRAS;
    }
    if (!sink_.take(i, e, r_.groups)) {
        s_.abandon_entry(e);
        return stopped_ = KVO_STORE_NO_RECORD;
    }
    previous_ = e;
    if (r_.who != nullptr) r_.who->settled(e, i);
    return KVO_STORE_TAKEN;
}

// Slots next to those of the block before, so that copies merge. All or none.
bool placement::take_slots(entry_id e, uint32_t groups, bool into_ready) {
    for (uint32_t g = 0; g < s_.groups.size(); ++g) {
        if ((groups & 1u << g) == 0) continue;
        const slot_id slot = s_.take_slot(g, near_[g]);
        if (slot == kNoSlot) {
            give_slots(e, groups & ((1u << g) - 1));
            return false;
        }
        s_.index->set_slot(e, g, into_ready ? filling(slot) : slot);
        near_[g] = slot;
    }
    return true;
}

void placement::give_slots(entry_id e, uint32_t groups) {
    for (uint32_t g = 0; g < s_.groups.size(); ++g) {
        if ((groups & 1u << g) == 0) continue;
        s_.pool.give(g, settled(s_.index->slot(e, g)));  // nothing was written to it
        s_.index->set_slot(e, g, kNoSlot);
    }
}

void placement::count(uint32_t i, kvo_verdict_t verdict) {
    if (r_.verdicts != nullptr) r_.verdicts[i] = static_cast<uint8_t>(verdict);
    kvo_stats_t& c = s_.counters;
    switch (verdict) {
        case KVO_STORE_TAKEN:
            ++result_.n_taken;
            return;
        case KVO_STORE_PRESENT:
        case KVO_STORE_DUPLICATE:
            ++c.store_present;
            ++result_.n_present;
            return;
        case KVO_STORE_PENDING:
            ++c.store_pending;
            ++result_.n_present;
            return;
        case KVO_STORE_FULL:
            ++c.store_refused_full;
            break;
        case KVO_STORE_ORPHAN:
            ++c.store_refused_orphan;
            break;
        case KVO_STORE_NO_RECORD:
            ++c.store_refused_record;
            break;
        default:
            ++c.store_refused_other;
            break;
    }
    ++result_.n_refused;
}

void placement::unpin_one(entry_id e) {
    if (s_.is_live(e)) s_.index->touch(e);
    s_.index->unpin(e);
}

// Parents first, so that each finds its parent in the victim order and goes behind it: what hangs
// on a block is never the more recent one. Without a chain the first key becomes the most recent
// one all the same.
void placement::unpin_all(locked& lock) {
    if (parent_ != kNoEntry) s_.index->unpin(parent_);
    for (uint32_t begin = 0, n = pinned_.n; begin < n; begin += kKeysPerLock) {
        if (begin > 0) {
            lock.unlock();
            lock.lock();
        }
        const uint32_t end = std::min(n, begin + kKeysPerLock);
        if (r_.unchained) {
            for (uint32_t i = begin; i < end; ++i) unpin_one(entry_id{s_.runs.pop(pinned_)});
        } else {
            auto at = s_.runs.at(pinned_, begin);
            for (uint32_t i = begin; i < end; ++i, ++at) unpin_one(entry_id{*at});
        }
    }
    s_.runs.clear(pinned_);
}

}  // namespace kvo

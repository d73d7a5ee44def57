// The cache as owner of index and transfer engine: what happens when an entry leaves, a block is
// over, an op is over. All of it runs under the cache lock, inside calls of the index or the
// engine.
#include "cache/state.hpp"

namespace kvo {

namespace {

kvo_remove_reason_t public_reason(leave_reason why) {
    switch (why) {
        case leave_reason::purged:
            return KVO_REMOVED_PURGED;
        case leave_reason::reset:
            return KVO_REMOVED_RESET;
        case leave_reason::suspect:
        case leave_reason::failed:
            return KVO_REMOVED_SUSPECT;
        case leave_reason::shrunk:
            return KVO_REMOVED_SHRUNK;
        case leave_reason::evicted:
            break;
    }
    return KVO_REMOVED_EVICTED;
}

bool bit(const std::vector<uint64_t>& bits, entry_id e) {
    return bits[raw(e) / 64] >> raw(e) % 64 & 1;
}
void set_bit(std::vector<uint64_t>& bits, entry_id e, bool value) {
    const uint64_t mask = uint64_t{1} << raw(e) % 64;
    bits[raw(e) / 64] = value ? bits[raw(e) / 64] | mask : bits[raw(e) / 64] & ~mask;
}

}  // namespace

// ---- entries ----

bool cache::state::is_live(entry_id e) const {
    const entry_state now = index->state(e);
    return now == entry_state::ready || now == entry_state::writing;
}

uint32_t cache::state::groups_present(entry_id e) const {
    uint32_t mask = 0;
    for (uint32_t g = 0; g < groups.size(); ++g)
        mask |= (is_present(index->slot(e, g)) ? 1u : 0u) << g;
    return mask;
}

bool cache::state::is_filling_any(entry_id e) const {
    for (uint32_t g = 0; g < groups.size(); ++g) {
        if (is_filling(index->slot(e, g))) return true;
    }
    return false;
}

slot_id cache::state::take_slot(uint32_t g, slot_id near) {
    for (;;) {
        const slot_id slot = pool.take(g, near);
        if (slot != kNoSlot) return slot;
        scrubbed done;
        if (!pool.finish_scrub(g, &done)) return kNoSlot;
        slot_scrubbed(done);
    }
}

void cache::state::slot_scrubbed(const scrubbed& done) {
    purges.gone(names[done.ns], done.side);
    chores_due.store(true, std::memory_order_relaxed);
}

void cache::state::give_slot(uint32_t g, slot_id slot, ns_id ns, uint8_t side) {
    if (!names[ns].scrub) {
        pool.give(g, settled(slot));
        return;
    }
    purge_queue::stays(names[ns], side);
    pool.give_to_scrub(g, settled(slot), ns, side);
    chores_due.store(true, std::memory_order_relaxed);
    setup.nudge();
}

void cache::state::entry_died(entry_id e) {
    if (index->state(e) != entry_state::dead) return;
    set_bit(dead_here, e, true);
    set_bit(dead_side, e, purge_queue::removed(names[index->ns(e)]) != 0);
}

void cache::state::remove_entry(entry_id e, leave_reason why) {
    const bool stays = index->pins(e) > 0;
    index->remove(e, why);
    if (stays) entry_died(e);
}

void cache::state::abandon_entry(entry_id e) {
    const bool dies = index->state(e) == entry_state::writing && index->pins(e) > 1;
    index->abandon(e);
    if (dies) entry_died(e);
}

// ---- index_owner ----

void cache::state::on_unpublish(entry_id e, leave_reason why) {
    if (why == leave_reason::evicted || why == leave_reason::shrunk) {
        ++counters.evicted_blocks;
        if (!index->reused(e)) ++counters.evicted_before_reuse;
        counters.age_evicted_ns_sum += time.now_ns() - index->stored_at_ns(e);
    }
    if (why == leave_reason::purged) ++counters.purged_blocks;
    if (why == leave_reason::suspect) ++counters.dropped_suspect;
    add_event(KVO_EVENT_REMOVED, public_reason(why), e);
}

void cache::state::on_release(entry_id e) {
    const ns_id ns = index->ns(e);
    const bool was_dead = bit(dead_here, e);
    const uint8_t side = was_dead ? bit(dead_side, e) : names[ns].side;
    for (uint32_t g = 0; g < groups.size(); ++g) {
        if (index->slot(e, g) != kNoSlot) give_slot(g, index->slot(e, g), ns, side);
    }
    if (keeper != nullptr) keeper->forget(e);
    if (!was_dead) return;
    set_bit(dead_here, e, false);
    purges.gone(names[ns], side);
    chores_due.store(true, std::memory_order_relaxed);
}

void cache::state::add_event(kvo_event_kind_t kind, uint32_t reason, entry_id e) {
    if (config.event_ring == 0) return;
    events.add({kind, reason, names.handle(index->ns(e)), index->key(e)});
}

// ---- transfer_owner ----

void cache::state::block_over(kvo_op_kind_t kind, uint64_t op_tag, op_block& block) {
    const op_note& note = notes[op_tag];
    if (note.reverting) return;
    if (kind == KVO_OP_LOAD) {
        load_block_over(block, note);
    } else {
        store_block_over(block, note);
    }
}

void cache::state::load_block_over(op_block& block, const op_note& note) {
    const entry_id e = block.entry;
    // A copy from these bytes failed: they can't be trusted. Anything else is no fault of theirs.
    if (block.result == KVO_E_TRANSFER && is_live(e)) remove_entry(e, leave_reason::suspect);
    if (block.result == KVO_OK && note.generation != generation) block.result = KVO_E_DROPPED;
    if (block.result == KVO_OK) ++counters.loaded_blocks;
    index->unpin(e);
}

void cache::state::store_block_over(op_block& block, const op_note& note) {
    const entry_id e = block.entry;
    const entry_state before = index->state(e);
    if (block.result == KVO_OK && before == entry_state::dead) block.result = KVO_E_DROPPED;
    if (block.result == KVO_OK) {
        ++counters.stored_blocks;
    } else if (block.result == KVO_E_DEPENDENCY) {
        ++counters.store_blocks_dependency;
    } else if (block.result == KVO_E_TRANSFER || block.result == KVO_E_DEVICE ||
               block.result == KVO_E_DEVICE_LOST) {
        ++counters.store_blocks_failed;
    } else {
        ++counters.store_blocks_withdrawn;
    }
    if (before == entry_state::writing) {
        if (block.result == KVO_OK) {
            index->commit(e, time.now_ns());
            add_event(KVO_EVENT_STORED, 0, e);
        } else {
            abandon_entry(e);
        }
        return;
    }
    // Groups that the op added to an entry that was here before; a dead one keeps them until its
    // release.
    for (uint32_t g = 0; before == entry_state::ready && g < groups.size(); ++g) {
        const slot_id slot = index->slot(e, g);
        if ((note.groups & 1u << g) == 0 || !is_filling(slot)) continue;
        index->set_slot(e, g, block.result == KVO_OK ? settled(slot) : kNoSlot);
        if (block.result != KVO_OK) give_slot(g, slot, index->ns(e));
    }
    index->unpin(e);
}

void cache::state::op_over(uint64_t op_tag, const kvo_completion_t& completion) {
    if (observer != nullptr && notes[op_tag].owner_tag != 0) {
        observer->op_over(notes[op_tag].owner_tag, completion);
    }
    close_note(op_tag);
    fd_due = fd_due || fd >= 0;
    chores_due.store(true, std::memory_order_relaxed);
}

}  // namespace kvo

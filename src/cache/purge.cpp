// Ends of life on request: purge of a namespace or a chain, and reset. Entries are removed in
// stretches of the lock; those that a copy, a view or a reservation still uses keep their bytes
// until it lets go.
#include <algorithm>

#include "cache/state.hpp"

namespace kvo {

void cache::state::remove_all(locked& lock, const ns_id* only, leave_reason why) {
    uint32_t looked = 0;
    for (entry_id e = index->next_live(0); e != kNoEntry; e = index->next_live(raw(e) + 1)) {
        if (only == nullptr || index->ns(e) == *only) remove_entry(e, why);
        if (++looked % kKeysPerLock == 0) {
            lock.unlock();
            lock.lock();
        }
    }
}

// Leaves first, so that the way up stays known. The entry at hand is pinned while the lock is let
// go. A walk longer than all entries means that links form a ring (keys given as their own
// ancestors): then the entry at hand goes without its children having gone.
void cache::state::remove_chain(locked& lock, ns_id ns, const kvo_key_t& root) {
    entry_id at = kNoEntry;
    uint32_t steps = 0, steps_down = 0;
    for (;;) {
        if (at == kNoEntry) {
            index->find(ns, {&root, 1}, {&at, 1});
            if (at == kNoEntry) return;
            steps_down = 0;
        }
        const entry_id child = index->first_child(at);
        if (child != kNoEntry && steps_down < plan.max_blocks) {
            at = child;
            ++steps_down;
        } else {
            const bool is_root =
                std::equal(root.bytes, root.bytes + sizeof root.bytes, index->key(at).bytes);
            const entry_id up = is_root ? kNoEntry : index->parent(at);
            remove_entry(at, leave_reason::purged);
            at = up;
            steps_down = 0;
        }
        if (++steps % kKeysPerLock != 0 || at == kNoEntry) continue;
        index->pin(at);
        lock.unlock();
        lock.lock();
        const bool lives = is_live(at);
        index->unpin(at);
        if (!lives) at = kNoEntry;
    }
}

// What lost its parent earlier may have hung below the chain; it is served to nobody anyway.
void cache::state::remove_orphans(locked& lock, ns_id ns) {
    if (index->counts().orphans == 0) return;
    uint32_t looked = 0;
    for (entry_id e = index->next_live(0); e != kNoEntry; e = index->next_live(raw(e) + 1)) {
        if (index->ns(e) == ns && index->is_orphan(e)) remove_entry(e, leave_reason::purged);
        if (++looked % kKeysPerLock == 0) {
            lock.unlock();
            lock.lock();
        }
    }
}

// Tickets of the namespace whose blocks are gone give up their pins, unless addresses were handed
// out.
void cache::state::revoke_purged(locked& lock, ns_id ns, bool whole_ns) {
    for (uint32_t i = 0; i < tickets.size(); ++i) {
        const ticket_record* t = tickets.at(i);
        if (t == nullptr || t->ns != ns || t->viewed) continue;
        bool gone = whole_ns;
        if (t->entries.n > 0 && !gone) {
            auto at = runs.at(t->entries, 0);
            for (uint32_t k = 0; k < t->entries.n && !gone; ++k) {
                gone = index->state(entry_id{*at}) == entry_state::dead;
                if (k + 1 < t->entries.n) ++at;
            }
        }
        if (gone) drop_ticket(lock, tickets.handle_at(i));
    }
}

void cache::state::revoke_tickets(locked& lock, bool viewed_too) {
    for (uint32_t i = 0; i < tickets.size(); ++i) {
        const ticket_record* t = tickets.at(i);
        if (t != nullptr && (viewed_too || !t->viewed)) drop_ticket(lock, tickets.handle_at(i));
    }
}

void cache::state::drop_reservations(locked& lock) {
    for (uint32_t i = 0; i < reservations.size(); ++i) {
        if (reservations.at(i) != nullptr) drop_reservation(lock, reservations.handle_at(i));
    }
}

status cache::purge(kvo_ns_t ns, const kvo_key_t* chain, kvo_op_t* op) {
    state& s = *state_;
    if (op != nullptr) *op = kvo_op_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    ns_id at{};
    if (status bad = s.names.find(ns, &at); bad != KVO_OK) return bad;
    op_request request;
    request.kind = KVO_OP_PURGE;
    request.detached = op == nullptr;
    op_index purge_op{};
    uint64_t tag = 0;
    if (status bad = s.open_op(request, 0, 0, &purge_op, &tag); bad != KVO_OK) return bad;
    lock.unlock();
    if (status bad = s.engine->submit(purge_op, KVO_STREAM_IDLE, op); bad != KVO_OK) {
        lock.lock();
        s.close_note(tag);
        return bad;
    }
    lock.lock();
    ++s.names[at].purges;
    if (chain == nullptr) {
        s.remove_all(lock, &at, leave_reason::purged);
    } else {
        s.remove_chain(lock, at, *chain);
        s.remove_orphans(lock, at);
    }
    s.revoke_purged(lock, at, chain == nullptr);
    s.purges.wait(s.names[at], purge_op);
    s.chores_due.store(true, std::memory_order_relaxed);
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::reset() {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    ++s.generation;
    s.engine->cancel_all(KVO_E_DROPPED);
    // Until the last entry is gone nothing is matched or loaded: what was not reached yet is old, too.
    ++s.resets_running;
    s.revoke_tickets(lock, false);
    // Whoever was given an address keeps its bytes until he lets go: a viewed ticket can then only be
    // released, and the commit of a reservation ends as dropped, because the entries are dead.
    s.remove_all(lock, nullptr, leave_reason::reset);
    --s.resets_running;
    lock.unlock();
    s.engine->wake();
    s.chores();
    return KVO_OK;
}

uint64_t cache::generation() const {
    const locked lock(state_->mutex);
    return state_->generation;
}

}  // namespace kvo

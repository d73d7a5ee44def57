// Tickets after their match: how far the run is, keeping less of it, letting go, looking at the
// bytes.
#include <algorithm>

#include "cache/state.hpp"

namespace kvo {

namespace {

status no_such_ticket(kvo_ticket_t ticket) {
    return fail(KVO_E_HANDLE,
                "ticket {:#x} is released, revoked by a purge or reset, or of another cache",
                ticket.value);
}

// Cuts the run behind its first n_keep blocks.
void cut(cache::state& s, locked& lock, uint64_t handle, uint32_t n_keep) {
    ticket_record* t = s.tickets.find(handle);
    while (t != nullptr && t->entries.n > n_keep) {
        // Children go first here; the index puts each behind its nearest ancestor that may leave.
        for (uint32_t i = 0; i < kKeysPerLock && t->entries.n > n_keep; ++i) {
            if (t->entries.n > t->n_ready) {
                --s.pending_refs;
            } else {
                --t->n_ready;
            }
            s.index->unpin(entry_id{s.runs.pop(t->entries)});
        }
        if (t->entries.n <= n_keep) return;
        lock.unlock();
        lock.lock();
        t = s.tickets.find(handle);
    }
}

// Sees which of the next blocks have become ready. *cut_at: where the run has to end; its length if
// nowhere.
void look_ahead(cache::state& s, ticket_record* t, uint32_t most, uint32_t* cut_at) {
    *cut_at = t->entries.n;
    if (t->n_ready == t->entries.n) return;
    auto at = s.runs.at(t->entries, t->n_ready);
    for (uint32_t i = 0; i < most && t->n_ready < t->entries.n; ++i, ++at) {
        const entry_state now = s.index->state(entry_id{*at});
        if (now == entry_state::dead) *cut_at = t->n_ready;
        if (now != entry_state::ready) return;
        ++t->n_ready;
        --s.pending_refs;
    }
}

}  // namespace

status cache::ticket_poll(kvo_ticket_t ticket, kvo_match_t* out) {
    state& s = *state_;
    *out = kvo_match_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    for (;;) {
        ticket_record* t = s.tickets.find(ticket.value);
        if (t == nullptr) return no_such_ticket(ticket);
        const uint32_t before = t->n_ready;
        uint32_t cut_at = 0;
        look_ahead(s, t, kKeysPerLock, &cut_at);
        if (t->n_ready < before + kKeysPerLock) {
            if (s.time.now_ns() >= t->deadline_ns) cut_at = t->n_ready;
            cut(s, lock, ticket.value, cut_at);
            break;
        }
        lock.unlock();
        lock.lock();
    }
    const ticket_record* t = s.tickets.find(ticket.value);
    if (t == nullptr) return no_such_ticket(ticket);
    *out = kvo_match_t{t->n_ready, t->entries.n - t->n_ready};
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::ticket_trim(kvo_ticket_t ticket, uint32_t n_keep) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.tickets.find(ticket.value) == nullptr) return no_such_ticket(ticket);
    cut(s, lock, ticket.value, n_keep);
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::ticket_release(kvo_ticket_t ticket) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.tickets.find(ticket.value) == nullptr) return no_such_ticket(ticket);
    s.drop_ticket(lock, ticket.value);
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::view(kvo_ticket_t ticket, uint32_t i, uint32_t group, const void** data,
                   uint64_t* bytes) {
    state& s = *state_;
    *data = nullptr;
    *bytes = 0;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    ticket_record* t = s.tickets.find(ticket.value);
    if (t == nullptr) return no_such_ticket(ticket);
    if (group >= s.groups.size())
        return fail(KVO_E_RANGE, "group {} of {}", group, s.groups.size());
    if (i >= t->n_ready) return fail(KVO_E_RANGE, "block {} of a ready run of {}", i, t->n_ready);
    const entry_id e{*s.runs.at(t->entries, i)};
    if (s.index->state(e) != entry_state::ready) {
        return fail(KVO_E_DROPPED, "block {} has been removed since the match", i);
    }
    t->viewed = true;
    *data = s.pool.address(group, s.index->slot(e, group));
    *bytes = s.groups[group].slot_bytes;
    return KVO_OK;
}

}  // namespace kvo

// Raw slots: room that the engine fills itself. A reservation holds its entries pinned, so none is
// a victim; commit makes an op of them that has no copies and is over when the stream has come that
// far.
#include <algorithm>

#include "cache/placement.hpp"
#include "cache/state.hpp"
#include "cache/store_options.hpp"

namespace kvo {

namespace {

status no_such_reservation(kvo_reservation_t r) {
    return fail(KVO_E_HANDLE,
                "reservation {:#x} is committed, aborted, or of another cache",
                r.value);
}

// Notes taken keys in a reservation.
class reservation_sink final : public placement_sink {
public:
    reservation_sink(cache::state& s, uint64_t handle) : s_(s), handle_(handle) {}
    bool is_hole(uint32_t) const override { return false; }
    bool take(uint32_t i, entry_id e, uint32_t) override {
        reservation_record* r = s_.reservations.find(handle_);
        if (r == nullptr || !s_.runs.push(r->entries, i)) return false;
        if (s_.runs.push(r->entries, raw(e))) return true;
        (void)s_.runs.pop(r->entries);
        return false;
    }

private:
    cache::state& s_;
    uint64_t handle_;
};

// The entry of key i, kNoEntry if it got no slot.
entry_id entry_of(cache::state& s, const reservation_record& r, uint32_t i) {
    auto at = s.runs.at(r.entries, 0);
    for (uint32_t k = 0; k < r.entries.n; k += 2, ++at, ++at) {
        if (*at != i) continue;
        ++at;
        return entry_id{*at};
    }
    return kNoEntry;
}

}  // namespace

status cache::reserve(kvo_ns_t ns, std::span<const kvo_key_t> keys, const kvo_key_t* parent,
                      const kvo_store_options_t& options, kvo_store_result_t* result,
                      kvo_reservation_t* out) {
    state& s = *state_;
    *result = kvo_store_result_t{};
    *out = kvo_reservation_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (status bad = check_store_options(options); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    placement_request r;
    if (status bad = s.names.find(ns, &r.ns); bad != KVO_OK) return bad;
    uint64_t handle = 0;
    reservation_record* record = s.reservations.take(&handle);
    if (record == nullptr) {
        return fail(KVO_E_PINNED_FULL,
                    "all {} reservations are in use: commit or abort some, or raise max_tickets",
                    s.reservations.size());
    }
    record->ns = r.ns;
    record->user_data = options.user_data;
    record->deadline_ns = options.deadline_ns;
    record->detached = (options.flags & KVO_OP_DETACHED) != 0;
    record->n_after = options.n_after;
    std::copy_n(options.after, options.n_after, record->after.begin());
    r.keys = keys;
    r.parent = parent;
    r.parents_held = options.parents_held == 1;
    r.unchained = (options.flags & KVO_STORE_UNCHAINED) != 0;
    r.groups = s.all_groups();
    r.verdicts = options.verdicts;
    ++s.counters.store_calls;
    reservation_sink sink(s, handle);
    placement place(s, r, sink);
    const status bad = place.run(lock);
    if (bad != KVO_OK) {
        if (s.reservations.find(handle) != nullptr) s.drop_reservation(lock, handle);
    } else {
        *result = place.result();
        *out = kvo_reservation_t{handle};
    }
    lock.unlock();
    s.chores();
    return bad;
}

status cache::slot(kvo_reservation_t r, uint32_t i, uint32_t group, void** data, uint64_t* bytes) {
    state& s = *state_;
    *data = nullptr;
    *bytes = 0;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    const reservation_record* record = s.reservations.find(r.value);
    if (record == nullptr) return no_such_reservation(r);
    if (group >= s.groups.size())
        return fail(KVO_E_RANGE, "group {} of {}", group, s.groups.size());
    const entry_id e = entry_of(s, *record, i);
    if (e == kNoEntry) return fail(KVO_E_RANGE, "key {} got no slot in this reservation", i);
    const slot_id slot = s.index->slot(e, group);
    // Of an entry that was here before, only the groups it lacked are the reservation's to write.
    if (s.index->state(e) == entry_state::ready && !is_filling(slot)) {
        return fail(KVO_E_RANGE, "key {} has its bytes of group {} already", i, group);
    }
    *data = s.pool.address(group, slot);
    *bytes = s.groups[group].slot_bytes;
    return KVO_OK;
}

namespace {

// The blocks of a reservation go into an op. On failure the op is dropped and the reservation is as
// before.
status add_reserved(cache::state& s, locked& lock, kvo_reservation_t r, op_index op) {
    for (uint32_t begin = 0;; begin += kKeysPerLock) {
        const reservation_record* record = s.reservations.find(r.value);
        if (record == nullptr) return no_such_reservation(r);
        const uint32_t n = record->entries.n / 2;
        if (begin >= n) return KVO_OK;
        auto at = s.runs.at(record->entries, begin * 2);
        for (uint32_t k = begin; k < std::min(n, begin + kKeysPerLock); ++k) {
            const uint32_t i = *at;
            ++at;
            const entry_id e{*at};
            if (k + 1 < n) ++at;
            const status bad = s.engine->add_block(op, op_block{e, i, KVO_OK}, {});
            if (bad != KVO_OK) return bad;
        }
        lock.unlock();
        lock.lock();
    }
}

}  // namespace

status cache::commit(kvo_reservation_t r, void* stream, kvo_op_t* op) {
    state& s = *state_;
    if (op != nullptr) *op = kvo_op_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    reservation_record* record = s.reservations.find(r.value);
    if (record == nullptr) return no_such_reservation(r);
    if (op == nullptr && !record->detached)
        return fail(KVO_E_ARGUMENT, "op is NULL without KVO_OP_DETACHED");
    lock.unlock();
    if (status bad = s.check_stream(stream); bad != KVO_OK) return bad;
    lock.lock();
    record = s.reservations.find(r.value);
    if (record == nullptr) return no_such_reservation(r);
    op_request request;
    request.kind = KVO_OP_STORE;
    request.user_data = record->user_data;
    request.deadline_ns = record->deadline_ns;
    request.detached = record->detached;
    request.after = {record->after.data(), record->n_after};
    op_index at{};
    uint64_t tag = 0;
    if (status bad = s.open_op(request, 0, s.all_groups(), &at, &tag); bad != KVO_OK) return bad;
    const status bad = add_reserved(s, lock, r, at);
    if (bad == KVO_OK) {
        // The op holds the entries from here on.
        s.runs.clear(s.reservations.find(r.value)->entries);
        s.reservations.give(r.value);
    } else {
        s.notes[tag].reverting = true;
    }
    return s.finish_submit(lock, at, tag, bad, stream, request.detached ? nullptr : op);
}

void cache::state::drop_reservation(locked& lock, uint64_t handle) {
    id_run r = reservations.find(handle)->entries;
    reservations.give(handle);
    while (r.n > 0) {
        for (uint32_t k = 0; k < kKeysPerLock && r.n > 0; ++k) {
            const entry_id e{runs.pop(r)};
            (void)runs.pop(r);
            if (index->state(e) != entry_state::ready) {
                abandon_entry(e);
                continue;
            }
            // Groups that the reservation wanted to add to an entry that was here before.
            for (uint32_t g = 0; g < groups.size(); ++g) {
                const slot_id slot = index->slot(e, g);
                if (!is_filling(slot)) continue;
                index->set_slot(e, g, kNoSlot);
                give_slot(g, slot, index->ns(e));
            }
            index->unpin(e);
        }
        if (r.n > 0) {
            lock.unlock();
            lock.lock();
        }
    }
}

status cache::abort(kvo_reservation_t r) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.reservations.find(r.value) == nullptr) return no_such_reservation(r);
    s.drop_reservation(lock, r.value);
    lock.unlock();
    s.chores();
    return KVO_OK;
}

}  // namespace kvo

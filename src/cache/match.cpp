// probe and match: the longest run of blocks from n_local on.
#include <algorithm>

#include "cache/config.hpp"
#include "cache/state.hpp"

namespace kvo {

namespace {

constexpr uint64_t kDefaultPendingNs = 1'000'000'000;

struct run_query {
    ns_id ns{};
    std::span<const kvo_key_t> keys;
    uint32_t n_local = 0;
    identity* who = nullptr;
    bool take_pending = true;
    bool may_adopt = true;
};

// Goes along a chain in stretches of at most kKeysPerLock keys and says which blocks belong to the
// run. With an identity it starts at block 0 and believes an entry only if its content and its
// parent are right.
class run_finder {
public:
    run_finder(cache::state& s, const run_query& q)
        : s_(s), q_(q), next_(q.who != nullptr ? 0 : q.n_local) {}

    // Looks at one stretch; calls on_block(entry, is_ready) for each block of the run, which
    // answers false to end it. False when the run has ended. Under the lock.
    template <typename OnBlock>
    bool look(OnBlock on_block) {
        const uint32_t begin = next_;
        const auto n = static_cast<uint32_t>(q_.keys.size());
        const uint32_t end = begin + std::min(n - begin, kKeysPerLock);
        if (begin > 0 && q_.who == nullptr) previous_ = look_up_before(begin);
        s_.index->find(q_.ns, q_.keys.subspan(begin, end - begin), found_);
        for (; next_ < end; ++next_) {
            const entry_id e = found_[next_ - begin];
            if (e == kNoEntry || (q_.who != nullptr && !is_verified(e))) return false;
            adopt(e);
            previous_ = e;
            if (next_ < q_.n_local) continue;
            if (!s_.is_complete(e)) return false;
            const bool is_ready = all_ready_ && s_.index->state(e) == entry_state::ready;
            if (!is_ready && !q_.take_pending) return false;
            if (!on_block(e, is_ready)) return false;
            all_ready_ = is_ready;
        }
        return next_ < n;
    }

private:
    bool is_verified(entry_id e) {
        const entry_id parent = s_.index->parent(e);
        const bool same = q_.who->same(e, next_) && parent == previous_ && !s_.index->is_orphan(e);
        if (!same) ++s_.counters.identity_mismatches;
        return same;
    }
    // The block before the stretch as it is now: the lock was open, the record may be another's.
    entry_id look_up_before(uint32_t begin) {
        entry_id e = kNoEntry;
        s_.index->find(q_.ns, q_.keys.subspan(begin - 1, 1), {&e, 1});
        return e;
    }
    // The parent of an orphan has come back under the same key. An exact check has no such trust.
    void adopt(entry_id e) {
        if (q_.may_adopt && q_.who == nullptr && previous_ != kNoEntry && previous_ != e &&
            s_.index->is_orphan(e) && !s_.is_identified(e)) {
            s_.index->link(e, previous_);
        }
    }

    cache::state& s_;
    const run_query& q_;
    uint32_t next_;
    entry_id previous_ = kNoEntry;
    bool all_ready_ = true;
    entry_id found_[kKeysPerLock];
};

}  // namespace

status cache::probe(kvo_ns_t ns, std::span<const kvo_key_t> keys, uint32_t n_local,
                    kvo_match_t* out) {
    state& s = *state_;
    *out = kvo_match_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (n_local > keys.size())
        return fail(KVO_E_RANGE, "n_local {} of {} keys", n_local, keys.size());
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    run_query q{ns_id{}, keys, n_local, nullptr, true, false};
    if (status bad = s.names.find(ns, &q.ns); bad != KVO_OK) return bad;
    if (s.resets_running > 0) return KVO_OK;  // a miss
    run_finder finder(s, q);
    const auto count = [out](entry_id, bool is_ready) {
        ++(is_ready ? out->n_ready : out->n_pending);
        return true;
    };
    while (finder.look(count)) {
        lock.unlock();
        lock.lock();
    }
    return KVO_OK;
}

namespace {

// Parents are touched after children, so that they are the more recent ones.
void touch_run(cache::state& s, locked& lock, uint64_t handle) {
    uint32_t end = UINT32_MAX;
    while (end > 0) {
        ticket_record* t = s.tickets.find(handle);
        if (t == nullptr || t->entries.n == 0) return;
        end = std::min(end, t->entries.n);
        auto at = s.runs.at(t->entries, end - 1);
        const uint32_t begin = end - std::min(end, kKeysPerLock);
        for (uint32_t i = end; i > begin; --i) {
            if (s.is_live(entry_id{*at})) s.index->touch(entry_id{*at});
            if (i > 1) --at;
        }
        end = begin;
        if (end > 0) {
            lock.unlock();
            lock.lock();
        }
    }
}

void touch_local(cache::state& s, locked& lock, const run_query& q) {
    entry_id found[kKeysPerLock];
    for (uint32_t end = q.n_local; end > 0;) {
        const uint32_t begin = end - std::min(end, kKeysPerLock);
        s.index->find(q.ns, q.keys.subspan(begin, end - begin), found);
        for (uint32_t i = end; i > begin; --i) {
            if (found[i - 1 - begin] != kNoEntry) s.index->touch(found[i - 1 - begin]);
        }
        end = begin;
        if (end > 0) {
            lock.unlock();
            lock.lock();
        }
    }
}

}  // namespace

status cache::match(kvo_ns_t ns, std::span<const kvo_key_t> keys, uint32_t n_local,
                    const kvo_match_options_t& options, const call_extras& extras,
                    kvo_ticket_t* ticket, kvo_match_t* out) {
    state& s = *state_;
    *ticket = kvo_ticket_t{};
    *out = kvo_match_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    status bad = check_struct("kvo_match_options_t", options.struct_size, options.api_version,
                              sizeof(options));
    if (bad != KVO_OK) return bad;
    if (n_local > keys.size())
        return fail(KVO_E_RANGE, "n_local {} of {} keys", n_local, keys.size());
    const uint64_t patience_ns = or_default(options.pending_deadline_ns, kDefaultPendingNs);
    locked lock(s.mutex);
    if ((bad = s.check_running()) != KVO_OK) return bad;
    run_query q{ns_id{}, keys, n_local, extras.who, patience_ns > 0, true};
    if ((bad = s.names.find(ns, &q.ns)) != KVO_OK) return bad;
    ++s.counters.match_calls;
    s.counters.match_blocks_asked += keys.size() - n_local;
    if (s.resets_running > 0) return KVO_OK;  // a miss

    uint64_t handle = 0;
    ticket_record* t = s.tickets.take(&handle);
    bool no_room = false;
    if (t != nullptr) {
        t->ns = q.ns;
        t->deadline_ns = add_ns(s.time.now_ns(), patience_ns);
    }
    const auto pin = [&](entry_id e, bool is_ready) {
        no_room = t == nullptr || !s.may_pin(e) || !s.runs.push(t->entries, raw(e));
        if (no_room) return false;
        s.index->pin(e);
        if (is_ready) {
            ++t->n_ready;
        } else {
            ++s.pending_refs;
        }
        return true;
    };
    run_finder finder(s, q);
    while (finder.look(pin)) {
        lock.unlock();
        lock.lock();
        t = s.tickets.find(handle);
        if (t == nullptr) return KVO_OK;  // revoked by a purge or reset meanwhile: a miss
    }
    if (t != nullptr && t->entries.n == 0) s.tickets.give(handle);
    if (t != nullptr && t->entries.n > 0) {
        *ticket = kvo_ticket_t{handle};
        *out = kvo_match_t{t->n_ready, t->entries.n - t->n_ready};
        s.counters.match_blocks_ready += out->n_ready;
        s.counters.match_blocks_pending += out->n_pending;
        touch_run(s, lock, handle);
    }
    touch_local(s, lock, q);
    if (ticket->value != 0 || !no_room) return KVO_OK;
    return fail(KVO_E_PINNED_FULL,
                "blocks are here but none can be pinned: {} pinned of {} allowed, {} of {} tickets "
                "in use; release "
                "tickets or raise max_pinned_bytes or max_tickets",
                s.index->counts().pinned, s.max_pinned_blocks(), s.tickets.n_used(),
                s.tickets.size());
}

}  // namespace kvo

// Set-up work: touching memory chunk by chunk, shrinking, zeroing. One step at a time, by the
// set-up thread or, where there is none, by the calls that drive the cache. Steps let go of the
// lock for long work.
#include <algorithm>
#include <cstring>

#include "cache/state.hpp"

namespace kvo {

namespace {

constexpr uint32_t kSlotsPerLock = 4096;  // bits set in one stretch of the lock
constexpr uint64_t kScrubBytesPerLock = 64 * 1024;
constexpr uint64_t kIdleSleepNs = 10'000'000'000;
constexpr uint64_t kBlockedSleepNs = 1'000'000;  // pins hold a shrink up: look again

}  // namespace

void cache::state::run_setup() {
    while (!setup.stopping()) {
        if (setup_step()) continue;
        locked lock(mutex);
        const bool blocked = phase == phase_t::running && setup_paused == 0 && !shrink_is_over();
        lock.unlock();
        setup.sleep(blocked ? kBlockedSleepNs : kIdleSleepNs);
    }
}

bool cache::state::setup_step() {
    const std::unique_lock step(setup_step_mutex, std::try_to_lock);
    if (!step.owns_lock()) return false;
    locked lock(mutex);
    bool did = scrub_step(lock);
    if (!did && phase == phase_t::running && setup_paused == 0)
        did = shrink_step(lock) || grow_step(lock);
    lock.unlock();
    chores();
    return did;
}

// ---- growing ----

void cache::state::set_usable(locked& lock, uint32_t n) {
    while (pool.usable() != n) {
        const uint32_t now = pool.usable();
        const uint32_t next = n > now ? std::min(n, now + kSlotsPerLock)
                                      : std::max(n, now - std::min(now, kSlotsPerLock));
        pool.set_usable(next);
        index->set_capacity(next);
        if (next == n) return;
        lock.unlock();
        lock.lock();
    }
}

bool cache::state::grow_step(locked& lock) {
    const uint32_t target = target_blocks;
    if (pool.usable() >= target || growth_failed) return false;
    lock.unlock();
    uint32_t n = 0;
    const status s = pool.populate_next(target, &n);
    if (s != KVO_OK) log(KVO_LOG_WARN, error_text());
    lock.lock();
    growth_failed = s != KVO_OK;
    n = std::min(n, target_blocks);
    if (n > pool.usable()) set_usable(lock, n);
    return s == KVO_OK;
}

// ---- shrinking ----

bool cache::state::shrink_is_over() const {
    return pool.usable() <= target_blocks && pool.n_used_at_or_above(target_blocks) == 0;
}

bool cache::state::shrink_step(locked& lock) {
    const uint32_t target = target_blocks;
    if (pool.usable() > target) {
        set_usable(lock, target);
        return true;
    }
    const index_counts c = index->counts();
    const uint32_t used = c.resident + c.writing + c.dead;
    uint32_t evicted = 0;
    while (used - evicted > target && evicted < kKeysPerLock) {
        if (index->evict_one(leave_reason::shrunk) == kNoEntry) break;
        ++evicted;
    }
    if (evicted > 0) return true;
    if (pool.n_used_at_or_above(target) > 0) return move_out_step(lock);
    if (pool.populated() <= target) return false;
    lock.unlock();
    const status s = pool.give_back(target);
    if (s != KVO_OK) log(KVO_LOG_WARN, error_text());
    lock.lock();
    return s == KVO_OK;
}

// Looks at a stretch of entries for those that lie in slots to be given back.
bool cache::state::move_out_step(locked& lock) {
    bool did = false;
    for (uint32_t looked = 0; looked < kKeysPerLock; ++looked) {
        const entry_id e = index->next_live(move_cursor);
        if (e == kNoEntry) {
            move_cursor = 0;
            return did;
        }
        move_cursor = raw(e) + 1;
        bool is_high = false;
        for (uint32_t g = 0; g < groups.size(); ++g) {
            const slot_id slot = index->slot(e, g);
            is_high = is_high || (slot != kNoSlot && raw(settled(slot)) >= target_blocks);
        }
        // A pinned one may be read or written by a copy right now; it has to wait.
        if (is_high && index->state(e) == entry_state::ready && index->pins(e) == 0) {
            did = move_out(lock, e) || did;
        }
    }
    return true;
}

bool cache::state::move_out(locked& lock, entry_id e) {
    const ns_id ns = index->ns(e);
    for (uint32_t g = 0; g < groups.size(); ++g) {
        const slot_id from = index->slot(e, g);
        if (from == kNoSlot || raw(from) < target_blocks) continue;
        const slot_id to = take_slot(g, kNoSlot);
        if (to == kNoSlot) return false;
        const kvo_key_t key = index->key(e);
        const uint64_t stored_at_ns = index->stored_at_ns(e);
        // Without the lock: bytes of a ready block don't change, and its slot is handed out to
        // nobody. Only a slot that may be zeroed meanwhile is copied under the lock.
        const bool unlocked = !names[ns].scrub;
        if (unlocked) lock.unlock();
        std::memcpy(pool.address(g, to), pool.address(g, from), pool.slot_stride(g));
        if (unlocked) lock.lock();
        const bool same = index->state(e) == entry_state::ready && index->pins(e) == 0 &&
                          index->slot(e, g) == from && index->stored_at_ns(e) == stored_at_ns &&
                          std::memcmp(&index->key(e), &key, sizeof key) == 0;
        if (same) index->set_slot(e, g, to);
        give_slot(g, same ? from : to, ns);
        if (!same) return false;
    }
    return true;
}

bool cache::state::scrub_step(locked&) {
    if (pool.n_to_scrub() == 0) return false;
    scrubbed done;
    if (pool.scrub_some(kScrubBytesPerLock, &done)) slot_scrubbed(done);
    return true;
}

// ---- calls ----

status cache::resize(uint64_t budget_bytes) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (budget_bytes > s.config.max_bytes) {
        return fail(KVO_E_RANGE,
                    "a budget of {} bytes is above max_bytes {}, which was fixed at create",
                    budget_bytes, s.config.max_bytes);
    }
    uint32_t blocks = 0;
    if (status bad = replan(s.plan, budget_bytes, &blocks); bad != KVO_OK) return bad;
    const bool grows = blocks > s.target_blocks;
    const uint64_t held = s.pool.touched_bytes() + s.plan.metadata_bytes;
    lock.unlock();
    if (grows) {
        const status bad = check_machine(budget_bytes, held, s.config.host_share, "a budget");
        if (bad != KVO_OK) return bad;
    }
    lock.lock();
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    s.target_blocks = blocks;
    s.budget_bytes = budget_bytes;
    s.growth_failed = false;
    lock.unlock();
    if (s.use_setup_thread()) {
        s.setup.nudge();
    } else {
        while (s.setup_step()) {
        }
    }
    return KVO_OK;
}

status cache::capacity(kvo_capacity_t* out) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    out->blocks_now = s.index->capacity();
    out->blocks_target = s.growth_failed ? s.pool.usable() : s.target_blocks;
    out->block_bytes = s.plan.block_bytes;
    out->metadata_bytes = s.plan.metadata_bytes;
    out->budget_bytes = s.budget_bytes;
    return KVO_OK;
}

status cache::setup_pause() {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const std::lock_guard step(s.setup_step_mutex);  // a step that runs now ends first
    const locked lock(s.mutex);
    ++s.setup_paused;
    return KVO_OK;
}

status cache::setup_resume() {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    {
        const locked lock(s.mutex);
        if (s.setup_paused == 0)
            return fail(KVO_E_STATE, "kvo_setup_resume without kvo_setup_pause");
        --s.setup_paused;
    }
    s.setup.nudge();
    return KVO_OK;
}

}  // namespace kvo

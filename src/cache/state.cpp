#include "cache/state.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace kvo {

cache::state::state(const kvo_config_t& filled, const device_table& table, const time_source& clock,
                    uint32_t cache_tag)
    : config(filled),
      device(table),
      time(clock),
      tag(cache_tag),
      names(filled.budget_bytes, cache_tag),
      budget_bytes(filled.budget_bytes) {
    const auto* bytes = static_cast<const uint8_t*>(filled.fingerprint);
    fingerprint.assign(bytes, bytes + filled.fingerprint_bytes);
    config.fingerprint = fingerprint.data();
}

cache::state::~state() {
    if (fd >= 0) close(fd);
    engine.reset();  // its streams and events are the device's
    if (device.release != nullptr) device.release(device.context);
}

// ---- checks ----

status cache::state::check_process() const {
    if (!fork.forked()) return KVO_OK;
    return fail(KVO_E_FORKED,
                "this process is a fork of the one that created the cache; create one of its own");
}

status cache::state::check_running() const {
    if (phase == phase_t::running) return KVO_OK;
    if (phase == phase_t::stopped) return fail(KVO_E_STATE, "the cache is shut down");
    return check_started();
}

status cache::state::check_started() const {
    if (phase != phase_t::created) return KVO_OK;
    return fail(KVO_E_STATE, "the cache is not started: call kvo_cache_start first");
}

status cache::state::check_attached(uint32_t group_mask) const {
    for (uint32_t g = 0; g < groups.size(); ++g) {
        if ((group_mask & 1u << g) != 0 && !groups[g].attached) {
            return fail(KVO_E_STATE, "group {} is detached: call kvo_group_attach first",
                        groups[g].name);
        }
    }
    return KVO_OK;
}

status cache::state::check_generation(uint64_t expected) const {
    if (expected == 0 || expected == generation) return KVO_OK;
    return fail(KVO_E_DROPPED, "the cache has been reset meanwhile");
}

status cache::state::check_stream(void* stream) const {
    if (stream == KVO_STREAM_IDLE) return KVO_OK;
    return device.stream_check(device.context, stream);
}

// ---- ops ----

status cache::state::open_op(op_request request, uint64_t owner_tag, uint32_t group_mask,
                             op_index* op, uint64_t* op_tag) {
    if (!notes.take(&request.tag)) {
        return fail(KVO_E_OPS_FULL, "all {} op records are in use: take completions with kvo_poll",
                    config.max_ops);
    }
    const status s = engine->open(request, op);
    if (s != KVO_OK) {
        notes.give(request.tag);
        return s;
    }
    op_note& note = notes[request.tag];
    note.owner_tag = owner_tag;
    note.generation = generation;
    note.groups = group_mask;
    note.detached = request.detached;
    if (!request.detached) ++n_unfinished;
    for (uint32_t g = 0; g < groups.size(); ++g) groups[g].ops += group_mask >> g & 1;
    *op_tag = request.tag;
    return KVO_OK;
}

void cache::state::close_note(uint64_t op_tag) {
    const uint32_t mask = notes[op_tag].groups;
    if (!notes[op_tag].detached) --n_unfinished;
    for (uint32_t g = 0; g < groups.size(); ++g) groups[g].ops -= mask >> g & 1;
    notes.give(op_tag);
}

status cache::state::finish_submit(locked& lock, op_index op, uint64_t op_tag, status so_far,
                                   void* stream, kvo_op_t* out, shared_gate* gate) {
    status s = so_far;
    if (s == KVO_OK) {
        lock.unlock();
        s = engine->submit(op, stream, out, gate);
        lock.lock();
    } else {
        engine->drop(op, s);
    }
    if (s != KVO_OK) close_note(op_tag);
    lock.unlock();
    chores();
    return s;
}

void cache::state::chores() {
    if (!chores_due.exchange(false, std::memory_order_relaxed)) return;
    locked lock(mutex);
    if (engine == nullptr) return;
    op_index op{};
    while (purges.take_done(&op)) engine->finish_external(op, KVO_OK);
    const bool signal = fd_due;
    fd_due = false;
    const int to = fd;
    const bool scrub_due = !use_setup_thread() && pool.n_to_scrub() > 0;
    lock.unlock();
    if (scrub_due) engine->wake();
    if (signal) {
        const uint64_t one = 1;
        // A full counter is readable already; nothing else can go wrong with our own eventfd.
        [[maybe_unused]] const ssize_t n = write(to, &one, sizeof one);
    }
}

bool cache::state::drive() {
    const bool more = engine->progress_once();
    if (!use_setup_thread()) setup_step();
    chores();
    return more;
}

// ---- tickets ----

uint64_t cache::state::max_pinned_blocks() const {
    const uint64_t half = std::max<uint64_t>(index->capacity() / 2, 1);
    return config.max_pinned_bytes == KVO_DEFAULT_U64 ? half
                                                      : config.max_pinned_bytes / plan.block_bytes;
}

// One block counts once, however many tickets and loads pin it.
bool cache::state::may_pin(entry_id e) const {
    const bool ready = index->state(e) == entry_state::ready;
    if (ready && index->pins(e) > 0) return true;
    const index_counts c = index->counts();
    return c.pinned - c.writing + pending_refs < max_pinned_blocks();
}

void cache::state::release_run(locked& lock, id_run* r, uint32_t n_pending) {
    pending_refs -= n_pending;
    // Parents first: each child then finds its parent in the victim order and goes behind it.
    for (uint32_t begin = 0; begin < r->n; begin += kKeysPerLock) {
        if (begin > 0) {
            lock.unlock();
            lock.lock();
        }
        auto at = runs.at(*r, begin);
        const uint32_t end = std::min(r->n, begin + kKeysPerLock);
        for (uint32_t i = begin; i < end; ++i, ++at) index->unpin(entry_id{*at});
    }
    runs.clear(*r);
}

void cache::state::drop_ticket(locked& lock, uint64_t handle) {
    ticket_record* t = tickets.find(handle);
    id_run r = t->entries;
    const uint32_t n_pending = r.n - t->n_ready;
    tickets.give(handle);
    release_run(lock, &r, n_pending);
}

void cache::state::log(kvo_log_level_t level, const char* text) const {
    if (config.log != nullptr) config.log(config.log_user, level, text);
}

}  // namespace kvo

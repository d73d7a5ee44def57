// What a caller does with accepted ops: fences, waits, polls, cancels.
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "cache/state.hpp"

namespace kvo {

status cache::fence(std::span<const kvo_blocks_t> blocks, void* stream, kvo_fence_mode_t mode) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    {
        const locked lock(s.mutex);
        if (status bad = s.check_started(); bad != KVO_OK) return bad;
    }
    if (mode != KVO_FENCE_DROP && mode != KVO_FENCE_FINISH) {
        return fail(KVO_E_ARGUMENT, "fence mode is {}; known are 0 (drop) and 1 (finish)",
                    static_cast<int>(mode));
    }
    uint32_t mask = 0;
    if (status bad = s.groups.check_lists(blocks, 0, false, &mask); bad != KVO_OK) return bad;
    const status done = s.engine->fence(blocks, stream, mode);
    s.chores();
    return done;
}

void cache::end_share(shared_gate* gate) {
    if (state_->check_process() != KVO_OK) return;
    const locked lock(state_->mutex);
    if (state_->engine != nullptr) state_->engine->end_share(gate);
}

status cache::fence_op(kvo_op_t op, uint32_t first, void* stream) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    {
        const locked lock(s.mutex);
        if (status bad = s.check_started(); bad != KVO_OK) return bad;
    }
    const status done = s.engine->fence_op(op, first, stream);
    s.chores();
    return done;
}

status cache::op_wait_stream(kvo_op_t op, void* stream, uint32_t flags) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    {
        const locked lock(s.mutex);
        if (status bad = s.check_started(); bad != KVO_OK) return bad;
    }
    if ((flags & ~KVO_WAIT_TRY) != 0) return fail(KVO_E_ARGUMENT, "unknown flags {:#x}", flags);
    if (stream == KVO_STREAM_IDLE) {
        return fail(KVO_E_ARGUMENT,
                    "KVO_STREAM_IDLE is no stream that could wait; use kvo_op_wait");
    }
    const status done = s.engine->wait_stream(op, stream, flags);
    s.chores();
    return done;
}

status cache::poll(kvo_completion_t* out, uint32_t max, uint64_t budget_ns, uint32_t* n) {
    state& s = *state_;
    *n = 0;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.config.progress == KVO_PROGRESS_MANUAL) {
        lock.unlock();
        const uint64_t start = read_clock(CLOCK_MONOTONIC);
        while (s.drive() && read_clock(CLOCK_MONOTONIC) - start < budget_ns) {
        }
        lock.lock();
    }
    *n = s.engine->take(out, max);
    return KVO_OK;
}

status cache::op_test(kvo_op_t op, kvo_completion_t* out) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.config.progress == KVO_PROGRESS_MANUAL) {
        lock.unlock();
        s.drive();
        lock.lock();
    }
    return s.engine->take_one(op, out);
}

status cache::op_wait(kvo_op_t op, uint64_t timeout_ns, kvo_completion_t* out) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    status got = KVO_E_NOT_READY;
    const bool over = s.wait_until(lock, timeout_ns, [&] {
        got = s.engine->take_one(op, out);
        return got != KVO_E_NOT_READY;
    });
    if (over) return got;
    return fail(KVO_E_TIMEOUT, "op {:#x} is not over after {} ns; it goes on", op.value,
                timeout_ns);
}

status cache::op_cancel(kvo_op_t op) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    status done = KVO_OK;
    {
        const locked lock(s.mutex);
        if (status bad = s.check_started(); bad != KVO_OK) return bad;
        done = s.engine->cancel(op, KVO_E_CANCELLED);
    }
    s.chores();
    return done;
}

status cache::pending(uint32_t* n) {
    state& s = *state_;
    *n = 0;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    *n = s.engine->n_active();
    return KVO_OK;
}

status cache::event_fd(int* fd) {
    state& s = *state_;
    *fd = -1;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.fd < 0) s.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s.fd < 0) return fail(KVO_E_MEMORY, "eventfd: {}", std::strerror(errno));
    // What is there already counts too.
    s.fd_due = s.fd_due || s.engine->counts().completions_waiting > 0;
    s.chores_due.store(true, std::memory_order_relaxed);
    *fd = s.fd;
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::quiesce(uint64_t timeout_ns) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.wait_until(lock, timeout_ns, [&s] { return s.engine->n_active() == 0; })) return KVO_OK;
    return fail(KVO_E_TIMEOUT, "{} ops are not over after {} ns", s.engine->n_active(), timeout_ns);
}

// ---- groups whose device pool comes and goes ----

status cache::group_detach(uint32_t group) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (group >= s.groups.size())
        return fail(KVO_E_RANGE, "group {} of {}", group, s.groups.size());
    if (!s.groups[group].on_device())
        return fail(KVO_E_ARGUMENT, "group {} has no device parts", group);
    if (status bad = s.check_attached(1u << group); bad != KVO_OK) return bad;
    s.groups[group].attached = false;
    s.engine->cancel_group(group, KVO_E_DROPPED);
    s.engine->wake();
    s.wait_until(lock, KVO_FOREVER, [&s, group] { return s.groups[group].ops == 0; });
    lock.unlock();
    s.chores();
    return KVO_OK;
}

status cache::group_attach(uint32_t group, const kvo_part_t* parts, uint32_t n_parts) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (group >= s.groups.size())
        return fail(KVO_E_RANGE, "group {} of {}", group, s.groups.size());
    if (!s.groups[group].on_device() || s.groups[group].attached) {
        return fail(KVO_E_STATE, "group {} is not detached", s.groups[group].name);
    }
    if (s.groups[group].ops > 0) {
        return fail(KVO_E_BUSY, "{} ops of group {} are not over yet", s.groups[group].ops,
                    s.groups[group].name);
    }
    if (parts == nullptr) return fail(KVO_E_ARGUMENT, "parts is NULL");
    if (status bad = s.groups.attach(group, {parts, n_parts}); bad != KVO_OK) return bad;
    s.engine->set_parts(group, s.groups[group].parts);
    return KVO_OK;
}

status cache::ns_open(std::string_view name, const kvo_ns_options_t& options, kvo_ns_t* out) {
    state& s = *state_;
    *out = kvo_ns_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (s.phase == state::phase_t::stopped) return s.check_running();
    return s.names.open(name, options, out);
}

status cache::ns_name(kvo_ns_t ns, std::string_view* out) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    ns_id at{};
    if (status bad = s.names.find(ns, &at); bad != KVO_OK) return bad;
    *out = s.names.name(at);
    return KVO_OK;
}

}  // namespace kvo

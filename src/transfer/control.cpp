// Calls that change the course of ops: cancel, fence, waits of streams and of the host.
#include <chrono>

#include "transfer/engine_state.hpp"

namespace kvo {

status transfer_engine::cancel(kvo_op_t op, status why) {
    state& s = *state_;
    const op_record* r = s.find(op.value);
    if (r == nullptr || r->phase == op_phase::open) {
        return fail(KVO_E_HANDLE, "{:#x} is no op whose completion is still to be taken", op.value);
    }
    if (r->phase == op_phase::accepted && r->completion.kind != KVO_OP_PURGE) {
        s.withdraw_op(s.number_of(op.value), why);
    }
    return KVO_OK;
}

void transfer_engine::cancel_all(status why) {
    state& s = *state_;
    for (uint32_t i = 0; i < s.ops.size(); ++i) {
        const op_record& r = s.ops[i];
        const bool runs = r.id != 0 && r.phase == op_phase::accepted;
        if (runs && r.completion.kind != KVO_OP_PURGE) s.withdraw_op(i, why);
    }
}

void transfer_engine::close_intake() { state_->closed = true; }

void transfer_engine::cancel_group(uint32_t group, status why) {
    state& s = *state_;
    for (uint32_t i = 0; i < s.ops.size(); ++i) {
        op_record& r = s.ops[i];
        if (r.id == 0 || r.phase != op_phase::accepted) continue;
        for (uint32_t p = r.next_piece; p != kNone; p = s.pieces[p].next_in_op) {
            const piece_record& piece = s.pieces[p];
            if (piece.state == piece_state::waiting && piece.group == group) s.withdraw_piece(p, why);
        }
        s.after_withdrawal(i);
    }
}

status transfer_engine::state::wait_for_slices(const slices_to_wait_for& which, void* stream,
                                               std::unique_lock<std::mutex>& lock) {
    void* events[kLanes] = {};
    for (uint8_t lane = 0; lane < kLanes; ++lane) {
        if (which.serial[lane] == 0) continue;
        for (uint32_t k = 0; k < lanes[lane].n; ++k) {
            if (lanes[lane].at(k).serial != which.serial[lane]) continue;
            events[lane] = lanes[lane].event_behind(k);
            if (events[lane] == nullptr) {
                return fail(KVO_E_NOT_READY, "the device could not record an event yet: call again");
            }
        }
    }
    lock.unlock();
    // Should a slice end now and its event be used again, the stream waits for later work of ours: longer
    // than needed, never wrong, and never for ever, since our copies wait for nobody.
    for (void* event : events) {
        if (event == nullptr) continue;
        const status ok = device.stream_wait(device.context, stream, event);
        if (ok != KVO_OK) return ok;
    }
    return KVO_OK;
}

void transfer_engine::state::check_fence_block(uint32_t group, uint32_t id, kvo_fence_mode_t mode,
                                               slices_to_wait_for* which, bool* issuing_now,
                                               uint64_t* to_pull) {
    for (uint32_t p = fences.first(group, id); p != kNone;) {
        const uint32_t next = pieces[p].fence_next;
        const uint32_t op = blocks[pieces[p].block].op;
        switch (pieces[p].state) {
            case piece_state::waiting:
                if (mode == KVO_FENCE_FINISH && ops[op].phase == op_phase::accepted) {
                    *to_pull = ops[op].id;
                } else {
                    withdraw_piece(p, KVO_E_DROPPED);
                    if (ops[op].phase == op_phase::accepted) after_withdrawal(op);
                }
                break;
            case piece_state::issuing:
                *issuing_now = true;
                break;
            case piece_state::queued:
                which->add(pieces[p]);
                break;
            case piece_state::over:
                break;
        }
        p = next;
    }
}

status transfer_engine::fence(std::span<const kvo_blocks_t> lists, void* stream, kvo_fence_mode_t mode) {
    state& s = *state_;
    for (const kvo_blocks_t& list : lists) {
        for (uint32_t k = 0; k < list.n; ++k) {
            const uint32_t n = s.fences.n_device_blocks(list.group);
            if (list.ids[k] == KVO_NO_BLOCK || list.ids[k] < n) continue;
            return fail(KVO_E_RANGE, "device block {} of group {}: there are {}", list.ids[k], list.group, n);
        }
    }
    std::unique_lock lock(s.mutex);
    ++s.counts.fences;
    if (s.fences.n_entries() > 0) {
        lock.unlock();
        if (const status bad = s.check_waiter(stream); bad != KVO_OK) return bad;
        lock.lock();
    }
    while (s.fences.n_entries() > 0) {
        state::slices_to_wait_for which;
        bool issuing_now = false;
        uint64_t to_pull = 0;
        for (const kvo_blocks_t& list : lists) {
            for (uint32_t k = 0; k < list.n; ++k) {
                if (list.ids[k] == KVO_NO_BLOCK) continue;
                s.check_fence_block(list.group, list.ids[k], mode, &which, &issuing_now, &to_pull);
            }
        }
        if (to_pull != 0) {
            lock.unlock();
            if (const status bad = s.pull_forward(to_pull); bad != KVO_OK) return bad;
            lock.lock();
            continue;
        }
        if (issuing_now) {
            ++s.counts.host_waits;
            s.issued.wait(lock, [&] { return !s.issuing; });
            continue;
        }
        if (!which.any()) return KVO_OK;
        if (stream == KVO_STREAM_IDLE) {
            return fail(KVO_E_NOT_READY, "copies of these blocks are queued and no stream was given that "
                                         "could wait: let them end (kvo_poll) and call again");
        }
        ++s.counts.fence_waits;
        return s.wait_for_slices(which, stream, lock);
    }
    return KVO_OK;
}

status transfer_engine::fence_op(kvo_op_t op, uint32_t first_ordinal, void* stream) {
    state& s = *state_;
    if (const status bad = s.check_waiter(stream); bad != KVO_OK) return bad;
    std::unique_lock lock(s.mutex);
    ++s.counts.fences;
    while (true) {
        const op_record* r = s.find(op.value);
        if (r == nullptr || r->phase != op_phase::accepted) return KVO_OK;  // over
        state::slices_to_wait_for which;
        bool issuing_now = false;
        for (uint32_t p = r->first_piece; p != kNone; p = s.pieces[p].next_in_op) {
            if (s.blocks[s.pieces[p].block].block.ordinal < first_ordinal) continue;
            if (s.pieces[p].state == piece_state::waiting) s.withdraw_piece(p, KVO_E_DROPPED);
            if (s.pieces[p].state == piece_state::issuing) issuing_now = true;
            if (s.pieces[p].state == piece_state::queued) which.add(s.pieces[p]);
        }
        s.after_withdrawal(s.number_of(op.value));
        if (issuing_now) {
            ++s.counts.host_waits;
            s.issued.wait(lock, [&] { return !s.issuing; });
            continue;
        }
        if (!which.any()) return KVO_OK;
        if (stream == KVO_STREAM_IDLE) {
            return fail(KVO_E_NOT_READY, "copies of op {:#x} are queued and no stream was given that could wait: "
                                         "let them end (kvo_poll) and call again", op.value);
        }
        ++s.counts.fence_waits;
        return s.wait_for_slices(which, stream, lock);
    }
}

// What the completion will say, as far as it is known: pieces that the device refused count already.
status transfer_engine::state::failure_so_far(const op_record& r) const {
    if (r.completion.status != KVO_OK) return static_cast<status>(r.completion.status);
    for (uint32_t p = r.first_piece; r.phase != op_phase::done && p != kNone; p = pieces[p].next_in_op) {
        if (pieces[p].result != KVO_OK) return pieces[p].result;
    }
    return KVO_OK;
}

// A stream that is about to wait for us; refused before anything is withdrawn.
status transfer_engine::state::check_waiter(void* stream) const {
    return stream == KVO_STREAM_IDLE ? KVO_OK : device.stream_check(device.context, stream);
}

status transfer_engine::wait_stream(kvo_op_t op, void* stream, uint32_t flags) {
    state& s = *state_;
    const status ok = s.device.stream_check(s.device.context, stream);
    if (ok != KVO_OK) return ok;
    std::unique_lock lock(s.mutex);
    while (true) {
        const op_record* r = s.find(op.value);
        if (!s.was_issued(op.value)) return fail(KVO_E_HANDLE, "{:#x} is no op of this cache", op.value);
        if (r == nullptr && s.failed.may_have(op.value)) {
            return fail(KVO_E_TRANSFER, "load {:#x} failed, its completion has been taken", op.value);
        }
        if (r == nullptr) return KVO_OK;  // over: nothing to wait for
        if (const status bad = s.failure_so_far(*r); bad != KVO_OK) {
            return fail(bad, "op {:#x} has failed already", op.value);
        }
        if (r->phase == op_phase::done) return KVO_OK;
        if (r->n_unqueued == 0) break;
        if (s.issuing && s.pieces[r->last_piece].state == piece_state::issuing) {
            ++s.counts.host_waits;
            s.issued.wait(lock, [&] { return !s.issuing; });
            continue;
        }
        if ((flags & KVO_WAIT_TRY) != 0) {
            return fail(KVO_E_NOT_QUEUED, "{} pieces of op {:#x} are not queued yet", r->n_unqueued, op.value);
        }
        lock.unlock();
        if (const status bad = s.pull_forward(op.value); bad != KVO_OK) return bad;
        lock.lock();
    }
    const op_record& r = *s.find(op.value);
    if (r.has_gate()) {  // nothing but the gate: raw slots that the engine writes
        void* const gate = s.gates[r.gate].event;
        lock.unlock();
        return s.device.stream_wait(s.device.context, stream, gate);
    }
    state::slices_to_wait_for which;
    for (uint32_t p = r.first_piece; p != kNone; p = s.pieces[p].next_in_op) {
        if (s.pieces[p].state == piece_state::queued) which.add(s.pieces[p]);
    }
    return s.wait_for_slices(which, stream, lock);
}

void transfer_engine::wake() {
    state& s = *state_;
    s.work_number.fetch_add(1, std::memory_order_seq_cst);
    if (void* const event = s.waiting_on.load(std::memory_order_seq_cst); event != nullptr) {
        s.device.event_interrupt(s.device.context, event);
    }
    if (!s.sleeping.load(std::memory_order_seq_cst)) return;
    const std::lock_guard lock(s.sleep_mutex);
    s.work.notify_one();
}

// What the worker may wait for on the device, and for how long: the oldest copy in flight, else the oldest
// gate. A gate behind another may open without anyone telling, so then it looks again soon.
void* transfer_engine::state::next_to_happen(uint64_t* limit_ns) {
    constexpr uint64_t kPollNs = 50'000, kLongNs = 10'000'000;
    const std::lock_guard lock(mutex);
    void* event = nullptr;
    uint32_t n_untold = gated.n;
    for (lane_state& lane : lanes) {
        if (event == nullptr && lane.n > 0) event = lane.event_behind(0);
    }
    if (event == nullptr && gated.n > 0) {
        event = gates[ops[gated.first].gate].event;
        --n_untold;
    }
    const bool waits_for_time = event == nullptr && ready[0].n + ready[1].n > 0;
    *limit_ns = n_untold > 0 || waits_for_time ? kPollNs : kLongNs;
    return event;
}

void transfer_engine::wait_for_work(uint64_t timeout_ns) {
    state& s = *state_;
    uint64_t limit_ns = 0;
    void* const event = s.next_to_happen(&limit_ns);
    if (event != nullptr && s.device.event_wait == nullptr) return;  // polled again at once
    const auto is_new = [&s] { return s.work_number.load(std::memory_order_seq_cst) != s.seen_work; };
    if (event != nullptr) {
        s.waiting_on.store(event, std::memory_order_seq_cst);
        if (!is_new()) (void)s.device.event_wait(s.device.context, event, std::min(limit_ns, timeout_ns));
        s.waiting_on.store(nullptr, std::memory_order_seq_cst);
    } else {
        const uint64_t longest = limit_ns < 1'000'000 ? limit_ns : uint64_t{1'000'000'000};
        std::unique_lock lock(s.sleep_mutex);
        s.sleeping.store(true, std::memory_order_seq_cst);
        s.work.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, longest)), is_new);
        s.sleeping.store(false, std::memory_order_seq_cst);
    }
    s.seen_work = s.work_number.load(std::memory_order_seq_cst);
}

void transfer_engine::wait_for_end(uint64_t timeout_ns) {
    state& s = *state_;
    std::unique_lock lock(s.sleep_mutex);
    const uint64_t before = s.end_number.load(std::memory_order_acquire);
    s.ended.wait_for(lock, std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1'000'000)),
                     [&] { return s.end_number.load(std::memory_order_acquire) != before; });
}

}  // namespace kvo

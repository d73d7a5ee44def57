// What drives the copies: gates, deadlines, slices that are done, slices to queue. One thread at a time is in
// here (`inside`); the cache lock is taken in short stretches and never held over a device call.
#include "transfer/engine_state.hpp"

namespace kvo {

namespace {
constexpr uint32_t kGatesPerRound = 64;
}

bool transfer_engine::progress_once() {
    state& s = *state_;
    const std::unique_lock inside(s.inside, std::try_to_lock);
    if (!inside.owns_lock()) return true;
    s.clean_up_lost();
    s.poll_gates();
    s.end_late_ops();
    for (uint8_t lane = 0; lane < kLanes; ++lane) s.retire(lane);
    s.fill(lane_load);
    s.fill(lane_store);
    const std::lock_guard lock(s.mutex);
    return s.in_flight();
}

bool transfer_engine::state::in_flight() const {
    return gated.n + ready[0].n + ready[1].n + lanes[0].n + lanes[1].n + lanes[2].n + lanes[3].n > 0;
}

// Nothing on a dead device touches memory any more that could be waited for: everything ends now, once.
void transfer_engine::state::clean_up_lost() {
    const std::lock_guard lock(mutex);
    if (lost == KVO_OK || cleaned_up) return;
    cleaned_up = true;
    for (uint8_t lane = 0; lane < kLanes; ++lane) {
        while (lanes[lane].n > 0) retire_oldest(lane, lost);
    }
    for (uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].id != 0 && ops[i].phase == op_phase::accepted) withdraw_op(i, lost);
    }
}

void transfer_engine::state::poll_gates() {
    struct gate {
        uint32_t op;
        uint64_t id;
        void* event;
        status result;
    } gates_now[kGatesPerRound];
    uint32_t n = 0;
    {
        const std::lock_guard lock(mutex);
        for (uint32_t i = gated.first; i != kNone && n < kGatesPerRound; i = ops[i].next) {
            gates_now[n++] = {i, ops[i].id, gates[ops[i].gate].event, KVO_OK};
        }
    }
    if (n == 0) return;
    for (uint32_t k = 0; k < n; ++k)
        gates_now[k].result = device.event_query(device.context, gates_now[k].event);
    const std::lock_guard lock(mutex);
    const bool more = gated.n > n;
    for (uint32_t k = 0; k < n; ++k) {
        const gate& g = gates_now[k];
        if (ops[g.op].id != g.id || ops[g.op].place != op_place::gated) continue;
        if (g.result == KVO_OK) {
            become_ready(g.op);
        } else if (g.result == KVO_E_DEVICE_LOST) {
            lost = g.result;
        } else if (g.result != KVO_E_NOT_READY) {
            withdraw_op(g.op, KVO_E_DROPPED);  // work before it on the caller's stream failed
        } else if (more) {
            gated.remove(ops, g.op);  // so that the next round sees the others
            gated.push(ops, g.op);
        }
    }
}

void transfer_engine::state::end_late_ops() {
    const std::lock_guard lock(mutex);
    if (n_with_deadline == 0) return;
    const uint64_t now = time.now_ns();
    for (op_list* list : {&gated, &ready[0], &ready[1]}) {
        for (uint32_t i = list->first; i != kNone;) {
            const uint32_t next = ops[i].next;
            if (ops[i].deadline_at_ns != 0 && ops[i].deadline_at_ns <= now) withdraw_op(i, KVO_E_DEADLINE);
            i = next;
        }
    }
}

void transfer_engine::state::retire_oldest(uint8_t lane, status result) {
    lane_state& l = lanes[lane];
    const slice_record slice = l.at(0);
    l.head = (l.head + 1) % static_cast<uint32_t>(l.slices.size());
    --l.n;
    uint32_t op = kNone;
    for (uint32_t p = slice.first_piece; p != kNone;) {
        const uint32_t next = pieces[p].next_in_slice;
        const status own = pieces[p].result != KVO_OK ? pieces[p].result : result;
        op = blocks[pieces[p].block].op;
        if (own == KVO_OK) {
            const uint64_t bytes = plan.piece_bytes(pieces[p].group);
            ops[op].completion.bytes += bytes;
            (is_load_lane(lane) ? counts.load_bytes : counts.store_bytes) += bytes;
        }
        piece_over(p, own);
        p = next;
    }
    const uint64_t now = time.now_ns();
    const uint64_t took = now - std::min(now, std::max(slice.queued_at_ns, l.last_end_ns));
    (is_load_lane(lane) ? counts.load_ns : counts.store_ns) += took;
    l.last_end_ns = now;
    if (lane == lane_load || lane == lane_store) pace.measured(lane == lane_load, slice.bytes, took);
    if (op != kNone) maybe_finish(op);
}

void transfer_engine::state::retire(uint8_t lane) {
    lane_state& l = lanes[lane];
    while (l.n > 0) {
        if (!l.at(l.n - 1).recorded) record(lane, &l.at(l.n - 1));
        void* const event = l.event_behind(0);
        const status result =
            event != nullptr ? device.event_query(device.context, event) : KVO_E_NOT_READY;
        if (result == KVO_E_NOT_READY) return;
        const std::lock_guard lock(mutex);
        if (result == KVO_E_DEVICE_LOST) {
            lost = result;
            return;
        }
        retire_oldest(lane, result);
    }
}

// The next op with pieces to queue, taking ops off the list that have none left.
uint32_t transfer_engine::state::next_op_for(uint8_t lane) {
    op_list& list = ready[lane];
    while (list.first != kNone) {
        op_record& r = ops[list.first];
        while (r.next_piece != kNone && pieces[r.next_piece].state != piece_state::waiting) {
            r.next_piece = pieces[r.next_piece].next_in_op;
        }
        if (r.next_piece != kNone) return list.first;
        r.place = op_place::none;
        list.remove(ops, list.first);
    }
    return kNone;
}

// Moves waiting pieces of one op into the slice and writes their descriptors, up to one device call and one
// window; a piece is never split over two rounds. false: there was none.
bool transfer_engine::state::take_pieces(uint32_t op, uint64_t window_bytes, slice_record* slice,
                                         slice_build* build) {
    op_record& r = ops[op];
    build->n_before += build->n_calls;
    build->n_calls = 0;
    uint64_t bytes = 0;
    bool any = false;
    for (; r.next_piece != kNone; r.next_piece = pieces[r.next_piece].next_in_op) {
        piece_record& piece = pieces[r.next_piece];
        if (piece.state != piece_state::waiting) continue;
        const uint64_t piece_bytes = plan.piece_bytes(piece.group);
        const bool fits = build->n_calls + plan.n_rows(piece.group) <= kPiecesPerCall &&
                          bytes + piece_bytes <= window_bytes;
        if (any && !fits) break;
        any = true;
        counts.pieces_merged += plan.append(build->direction, piece,
                                            addresses.slot_address(piece.group, piece.slot), calls.data(),
                                            &build->n_calls);
        piece.first_call_piece += build->n_before;
        piece.last_call_piece += build->n_before;
        piece.state = piece_state::issuing;
        piece.next_in_slice = kNone;
        (build->last_piece == kNone ? slice->first_piece : pieces[build->last_piece].next_in_slice) =
            r.next_piece;
        build->last_piece = r.next_piece;
        bytes += piece_bytes;
    }
    slice->bytes += bytes;
    issuing = issuing || any;
    return any;
}

void transfer_engine::state::call_device(uint8_t lane, slice_build* build) {
    for (uint32_t at = 0; at < build->n_calls && build->result == KVO_OK;) {
        const uint32_t n = std::min(kPiecesPerCall, build->n_calls - at);
        uint32_t n_queued = 0;
        build->result = device.copy_batch(device.context, lanes[lane].stream, build->direction,
                                          &calls[at], n, &n_queued);
        build->n_queued += n_queued;
        at += n;
    }
}

void transfer_engine::state::record(uint8_t lane, slice_record* slice) {
    const status ok = device.event_record(device.context, slice->event, lanes[lane].stream);
    const std::lock_guard lock(mutex);
    slice->recorded = ok == KVO_OK;
    if (ok == KVO_E_DEVICE_LOST) lost = ok;
}

// The slice's pieces are on the stream now, as far as the device took them. Pieces that it did not take, and
// the op's pieces behind them, end with the slice.
void transfer_engine::state::settle(uint8_t lane, uint32_t op, const slice_record& slice,
                                    const slice_build& build) {
    ++counts.slices;
    counts.pieces += build.n_queued;
    const int code = build.result == KVO_OK ? 0 : device.driver_code(device.context);
    if (build.result == KVO_E_DEVICE_LOST) lost = build.result;
    for (uint32_t p = slice.first_piece; p != kNone; p = pieces[p].next_in_slice) {
        piece_record& piece = pieces[p];
        piece.state = piece_state::queued;
        piece.lane = lane;
        piece.slice_serial = slice.serial;
        --ops[op].n_unqueued;
        if (build.result == KVO_OK || piece.last_call_piece < build.n_queued) continue;
        const bool is_the_one = piece.first_call_piece <= build.n_queued;
        piece.result = is_the_one ? build.result : KVO_E_DROPPED;
    }
    issuing = false;
    issued.notify_all();
    if (build.result == KVO_OK) return;
    ops[op].completion.driver_code = code;
    for (uint32_t p = ops[op].next_piece; p != kNone; p = pieces[p].next_in_op) {
        if (pieces[p].state == piece_state::waiting) withdraw_piece(p, KVO_E_DROPPED);
    }
}

void transfer_engine::state::fill(uint8_t lane) {
    lane_state& l = lanes[lane];
    while (l.n < kMainDepth) {
        std::unique_lock lock(mutex);
        if (lost != KVO_OK) return;
        // Loads first: a store gets one slice at a time while loads are waiting.
        if (lane == lane_store && ready[lane_load].n > 0 && l.n > 0) return;
        const uint32_t op = next_op_for(lane);
        if (op == kNone || (lane == lane_store && !pace.may_store(time.now_ns()))) return;
        slice_record& slice = l.at(l.n);
        slice = {l.next_serial++, l.events[(l.head + l.n) % kMainDepth], kNone, kNone, 0, 0, false};
        slice_build build;
        build.direction = lane == lane_load ? copy_direction::load : copy_direction::store;
        take_pieces(op, pace.window_bytes(lane == lane_load), &slice, &build);
        lock.unlock();
        slice.queued_at_ns = time.now_ns();
        call_device(lane, &build);
        record(lane, &slice);
        lock.lock();
        ++l.n;
        if (lane == lane_store) pace.stored(slice.bytes);
        settle(lane, op, slice, build);
    }
}

status transfer_engine::state::pull_forward(uint64_t id) {
    std::unique_lock in(inside, std::try_to_lock);
    const bool had_to_wait = !in.owns_lock();
    if (had_to_wait) in.lock();
    std::unique_lock lock(mutex);
    ++counts.host_waits;
    op_record* r = find(id);
    if (lost != KVO_OK) return fail(lost, "the device of this cache is lost");
    if (r == nullptr || r->phase != op_phase::accepted || r->n_unqueued == 0) return KVO_OK;
    const uint32_t op = number_of(id);
    const bool is_load = r->completion.kind == KVO_OP_LOAD;
    const uint8_t lane = is_load ? lane_side_load : lane_side_store;
    lane_state& l = lanes[lane];
    if (r->place == op_place::gated) {
        void* const gate = gates[r->gate].event;
        lock.unlock();
        const status ok = device.stream_wait(device.context, l.stream, gate);
        lock.lock();
        if (ok == KVO_E_DEVICE_LOST) lost = ok;
        if (ok != KVO_OK) return ok;
        if (r->id != id || r->phase != op_phase::accepted) return KVO_OK;
        if (r->place == op_place::gated) gated.remove(ops, op);
        leave_gate(*r);  // the device keeps the order from here on
        deliver_ready_blocks(op);  // those that a fence withdrew while the gate was closed
    } else if (r->place == op_place::ready) {
        ready[is_load ? 0 : 1].remove(ops, op);
    }
    r->place = op_place::none;
    slice_record& slice = l.at(l.n);
    slice = {l.next_serial++, r->event, kNone, op, 0, time.now_ns(), false};
    slice_build build;
    build.direction = is_load ? copy_direction::load : copy_direction::store;
    while (build.result == KVO_OK && take_pieces(op, UINT64_MAX, &slice, &build)) {
        lock.unlock();
        call_device(lane, &build);
        lock.lock();
    }
    if (slice.first_piece == kNone) return KVO_OK;
    lock.unlock();
    record(lane, &slice);
    lock.lock();
    ++l.n;
    settle(lane, op, slice, build);
    return KVO_OK;
}

}  // namespace kvo

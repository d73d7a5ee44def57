// Life of an accepted op: delivery of its blocks, withdrawal, completion, its records. Cache lock held.
#include <algorithm>
#include <cassert>

#include "transfer/engine_state.hpp"

namespace kvo {

void transfer_engine::state::accept(uint32_t i) {
    op_record& r = ops[i];
    r.phase = op_phase::accepted;
    ++n_active;
    if (r.completion.kind == KVO_OP_LOAD) ++counts.load_ops;
    if (r.completion.kind == KVO_OP_STORE) ++counts.store_ops;
    if (r.has_gate()) {
        r.place = op_place::gated;
        gated.push(ops, i);
    } else {
        become_ready(i);
    }
    if (lost != KVO_OK && r.phase == op_phase::accepted) withdraw_op(i, lost);
}

// Blocks without pieces (raw slots written by the engine) are over as soon as the gate has fired.
void transfer_engine::state::become_ready(uint32_t i) {
    op_record& r = ops[i];
    if (r.place == op_place::gated) gated.remove(ops, i);
    r.place = op_place::none;
    leave_gate(r);
    if (r.n_unqueued > 0) {
        r.place = op_place::ready;
        ready[r.completion.kind == KVO_OP_LOAD ? 0 : 1].push(ops, i);
    }
    deliver_ready_blocks(i);
    maybe_finish(i);
}

void transfer_engine::finish_external(op_index op, status result) {
    op_record& r = state_->ops[raw(op)];
    r.external_done = true;
    if (result != KVO_OK && r.completion.status == KVO_OK) r.completion.status = result;
    if (r.phase == op_phase::accepted) state_->maybe_finish(raw(op));
}

void transfer_engine::state::withdraw_piece(uint32_t p, status why) {
    op_record& r = ops[blocks[pieces[p].block].op];
    --r.n_unqueued;
    piece_over(p, why);
}

// The op must be accepted. May finish it: with nothing left to copy it needs no gate any more, and whoever
// waits for it must not wait for a stream that the caller may have stalled.
void transfer_engine::state::after_withdrawal(uint32_t i) {
    const op_record& r = ops[i];
    bool nothing_left = r.n_unqueued == 0;
    for (uint32_t b = r.first_block; nothing_left && b != kNone; b = blocks[b].next) {
        nothing_left = blocks[b].delivered || blocks[b].block.result != KVO_OK;
    }
    if (r.place == op_place::gated && nothing_left) {
        become_ready(i);
    } else {
        maybe_finish(i);
    }
}

// The op must be accepted. May finish it.
void transfer_engine::state::withdraw_op(uint32_t i, status why) {
    op_record& r = ops[i];
    for (uint32_t p = r.next_piece; p != kNone; p = pieces[p].next_in_op) {
        if (pieces[p].state == piece_state::waiting) withdraw_piece(p, why);
    }
    if (r.place == op_place::gated) {
        // Blocks that only waited for the gate are not done either; nobody needs the gate any more.
        for (uint32_t b = r.first_block; b != kNone; b = blocks[b].next) {
            if (!blocks[b].delivered && blocks[b].block.result == KVO_OK) blocks[b].block.result = why;
        }
        become_ready(i);
    } else {
        maybe_finish(i);
    }
}

void transfer_engine::state::piece_over(uint32_t p, status result) {
    piece_record& piece = pieces[p];
    fences.leave(p);
    piece.state = piece_state::over;
    block_record& b = blocks[piece.block];
    if (result != KVO_OK && b.block.result == KVO_OK) b.block.result = result;
    if (--b.pieces_left > 0) return;
    const op_record& r = ops[b.op];
    if (r.phase == op_phase::accepted && !r.has_gate() && r.n_after == 0) deliver(piece.block);
}

void transfer_engine::state::deliver(uint32_t b) {
    block_record& record = blocks[b];
    op_record& r = ops[record.op];
    if (record.delivered) return;
    record.delivered = true;
    --r.blocks_left;
    if (r.after_failed && record.block.result == KVO_OK) record.block.result = KVO_E_DEPENDENCY;
    owner.block_over(static_cast<kvo_op_kind_t>(r.completion.kind), r.tag, record.block);
    if (record.block.result == KVO_OK) {
        ++r.completion.n_done;
        return;
    }
    const uint32_t bad = record.block.ordinal;
    const bool is_first = r.completion.status == KVO_OK;
    r.completion.first_bad = is_first ? bad : std::min(r.completion.first_bad, bad);
    // A failed copy says more than the withdrawals it caused.
    if (is_first || record.block.result == KVO_E_TRANSFER) r.completion.status = record.block.result;
}

void transfer_engine::state::deliver_ready_blocks(uint32_t i) {
    if (ops[i].has_gate() || ops[i].n_after > 0) return;
    for (uint32_t b = ops[i].first_block; b != kNone; b = blocks[b].next) {
        if (blocks[b].pieces_left == 0) deliver(b);
    }
}

void transfer_engine::state::maybe_finish(uint32_t i) {
    op_record& r = ops[i];
    const bool waits = r.completion.kind == KVO_OP_PURGE && !r.external_done;
    if (r.phase != op_phase::accepted || r.has_gate() || r.blocks_left > 0 || waits) return;
    if (r.place == op_place::ready) ready[r.completion.kind == KVO_OP_LOAD ? 0 : 1].remove(ops, i);
    r.place = op_place::none;
    r.phase = op_phase::done;
    --n_active;
    if (r.deadline_at_ns > 0) --n_with_deadline;
    kvo_completion_t& c = r.completion;
    c.n_blocks = r.n_blocks;
    if (c.status == KVO_OK) c.first_bad = c.n_blocks;
    c.ns = time.now_ns() - r.submitted_at_ns;
    const bool is_load = c.kind == KVO_OP_LOAD;
    if (c.status != KVO_OK && is_load) ++counts.load_ops_failed;
    if (c.status != KVO_OK && c.kind == KVO_OP_STORE) ++counts.store_ops_failed;
    if (is_load && c.status != KVO_OK) failed.add(r.id);
    owner.op_over(r.tag, c);
    if (is_load && n_waiting_after > 0) load_ended(r);
    // The completion needs the op's record only; the others are free for the next op at once.
    free_blocks_of(r);
    if (r.detached) {
        free_records(i);
    } else {
        done.push(ops, i);
    }
    end_number.fetch_add(1, std::memory_order_release);
    const std::lock_guard lock(sleep_mutex);
    ended.notify_all();
}

void transfer_engine::state::load_ended(const op_record& load) {
    for (uint32_t i = 0; i < ops.size(); ++i) {
        op_record& r = ops[i];
        if (r.id == 0 || r.n_after == 0) continue;
        const auto end = r.after.begin() + r.n_after;
        const auto it = std::find(r.after.begin(), end, load.id);
        if (it == end) continue;
        std::swap(*it, r.after[--r.n_after]);
        if (load.completion.status != KVO_OK) r.after_failed = true;
        if (r.n_after > 0) continue;
        --n_waiting_after;
        if (r.phase != op_phase::accepted) continue;
        deliver_ready_blocks(i);
        maybe_finish(i);
    }
}

void transfer_engine::state::free_blocks_of(op_record& r) {
    for (uint32_t p = r.first_piece; p != kNone;) {
        const uint32_t next = pieces[p].next_in_op;
        free_pieces.give(p);
        p = next;
    }
    for (uint32_t b = r.first_block; b != kNone;) {
        const uint32_t next = blocks[b].next;
        free_blocks.give(b);
        b = next;
    }
    r.first_piece = r.last_piece = r.next_piece = r.first_block = r.last_block = kNone;
}

void transfer_engine::state::free_records(uint32_t i) {
    op_record& r = ops[i];
    leave_gate(r);
    free_blocks_of(r);
    if (r.phase == op_phase::open && r.deadline_at_ns > 0) --n_with_deadline;
    r.id = 0;
    free_ops.give(i);
}

uint32_t transfer_engine::take(kvo_completion_t* out, uint32_t max) {
    state& s = *state_;
    uint32_t n = 0;
    while (n < max && s.done.first != kNone) {
        const uint32_t i = s.done.first;
        out[n++] = s.ops[i].completion;
        s.done.remove(s.ops, i);
        s.free_records(i);
    }
    return n;
}

status transfer_engine::take_one(kvo_op_t op, kvo_completion_t* out) {
    state& s = *state_;
    const op_record* r = s.find(op.value);
    if (r == nullptr || r->phase == op_phase::open || r->detached) {
        return fail(KVO_E_HANDLE, "{:#x} is no op whose completion is still to be taken", op.value);
    }
    if (r->phase != op_phase::done) return KVO_E_NOT_READY;
    const uint32_t i = s.number_of(op.value);
    *out = r->completion;
    s.done.remove(s.ops, i);
    s.free_records(i);
    return KVO_OK;
}

}  // namespace kvo

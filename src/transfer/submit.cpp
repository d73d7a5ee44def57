// Before an op is accepted: its record, its blocks and pieces, its gate. Cache lock held, but in submit.
#include <algorithm>
#include <cassert>

#include "transfer/engine_state.hpp"

namespace kvo {

op_record* transfer_engine::state::find(uint64_t id) {
    const uint32_t i = number_of(id);
    return id != 0 && i < ops.size() && ops[i].id == id ? &ops[i] : nullptr;
}

status transfer_engine::open(const op_request& request, op_index* op) {
    state& s = *state_;
    *op = kNoOp;
    if (s.lost != KVO_OK) return fail(s.lost, "the device of this cache is lost");
    if (request.after.size() > kMaxAfter) {
        return fail(KVO_E_RANGE, "{} loads to wait for, at most {}", request.after.size(), kMaxAfter);
    }
    for (kvo_op_t load : request.after) {
        const op_record* r = s.find(load.value);
        if (!s.was_issued(load.value))
            return fail(KVO_E_HANDLE, "after: {:#x} is no op of this cache", load.value);
        if (r != nullptr && r->completion.kind != KVO_OP_LOAD)
            return fail(KVO_E_ARGUMENT, "after: {:#x} is no load; a store can depend on loads only", load.value);
        const bool running = r != nullptr && r->phase != op_phase::done;
        if (!running && s.failed.may_have(load.value)) {
            return fail(KVO_E_DEPENDENCY, "after: load {:#x} failed (or is too old to know)", load.value);
        }
    }
    const uint32_t i = s.free_ops.take();
    if (i == kNone) {
        return fail(KVO_E_OPS_FULL, "all {} op records are in use: take completions with kvo_poll, or "
                                    "raise max_ops", s.ops.size());
    }
    op_record& r = s.ops[i];
    void* const event = r.event;
    r = op_record{};
    r.event = event;
    r.id = s.next_serial++ * state::kIdStep + i;
    r.tag = request.tag;
    r.detached = request.detached;
    r.submitted_at_ns = s.time.now_ns();
    if (request.deadline_ns > 0) {
        r.deadline_at_ns = add_ns(r.submitted_at_ns, request.deadline_ns);
        ++s.n_with_deadline;
    }
    r.completion.op.value = r.id;
    r.completion.user_data = request.user_data;
    r.completion.kind = request.kind;
    for (kvo_op_t load : request.after) {
        const op_record* l = s.find(load.value);
        if (l != nullptr && l->phase != op_phase::done) r.after[r.n_after++] = load.value;
    }
    if (r.n_after > 0) ++s.n_waiting_after;
    *op = op_index{i};
    return KVO_OK;
}

namespace {

// All ids of one group are in range and free to be written, or the first that is not.
status check_ids(const fence_table& fences, const std::vector<piece_record>& pieces,
                 const std::vector<block_record>& blocks, const std::vector<op_record>& ops, uint32_t group,
                 std::span<const uint32_t> ids, bool is_load) {
    for (size_t k = 0; k < ids.size(); ++k) {
        const uint32_t id = ids[k];
        if (id == KVO_NO_BLOCK) continue;
        if (id >= fences.n_device_blocks(group)) {
            return fail(KVO_E_RANGE, "device block {} of group {}: there are {}", id, group,
                        fences.n_device_blocks(group));
        }
        if (!is_load) continue;
        for (uint32_t p = fences.first(group, id); p != kNone; p = pieces[p].fence_next) {
            if (ops[blocks[pieces[p].block].op].completion.kind != KVO_OP_LOAD) continue;
            return fail(KVO_E_BUSY, "device block {} of group {} is the target of another load already", id,
                        group);
        }
        if (std::find(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(k), id) !=
            ids.begin() + static_cast<std::ptrdiff_t>(k)) {
            return fail(KVO_E_BUSY, "device block {} of group {} is given twice in one load", id, group);
        }
    }
    return KVO_OK;
}

}  // namespace

status transfer_engine::add_block(op_index op, const op_block& block, std::span<const group_piece> groups) {
    state& s = *state_;
    op_record& r = s.ops[raw(op)];
    const bool is_load = r.completion.kind == KVO_OP_LOAD;
    uint32_t n_pieces = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].slot == kNoSlot) continue;
        const status ok = check_ids(s.fences, s.pieces, s.blocks, s.ops, static_cast<uint32_t>(g),
                                    groups[g].ids.subspan(groups[g].skip), is_load);
        if (ok != KVO_OK) return ok;
        const auto ids = groups[g].ids.subspan(groups[g].skip);
        n_pieces += static_cast<uint32_t>(ids.size() -
                                          static_cast<size_t>(std::count(ids.begin(), ids.end(), KVO_NO_BLOCK)));
    }
    if (s.free_blocks.n_free() == 0 || s.free_pieces.n_free() < n_pieces) {
        return fail(KVO_E_OPS_FULL, "in-flight block records are used up ({} free, {} needed): wait for "
                                    "completions, or raise max_inflight_blocks",
                    s.free_pieces.n_free(), n_pieces);
    }
    const uint32_t b = s.free_blocks.take();
    s.blocks[b] = {block, raw(op), kNone, n_pieces, false};
    (r.first_block == kNone ? r.first_block : s.blocks[r.last_block].next) = b;
    r.last_block = b;
    ++r.n_blocks;
    ++r.blocks_left;
    for (size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].slot == kNoSlot) continue;
        for (size_t k = groups[g].skip; k < groups[g].ids.size(); ++k) {
            if (groups[g].ids[k] == KVO_NO_BLOCK) continue;
            const uint32_t p = s.free_pieces.take();
            piece_record& piece = s.pieces[p];
            piece = piece_record{};
            piece.block = b;
            piece.device_block = groups[g].ids[k];
            piece.slot = groups[g].slot;
            piece.group = static_cast<uint16_t>(g);
            piece.sub = static_cast<uint16_t>(k);
            piece.state = piece_state::waiting;
            s.fences.enter(p);
            (r.first_piece == kNone ? r.first_piece : s.pieces[r.last_piece].next_in_op) = p;
            r.last_piece = p;
            ++r.n_unqueued;
        }
    }
    r.next_piece = r.first_piece;
    return KVO_OK;
}

uint32_t transfer_engine::n_blocks(op_index op) const { return state_->ops[raw(op)].n_blocks; }

// The gate of the batch, if one is there already; else one of the op's own, which becomes that of the
// batch. There is a gate for every op beside those that batches hold, so none is ever missing.
status transfer_engine::state::take_gate(op_record& r, shared_gate* shared, bool* must_record) {
    *must_record = shared == nullptr || shared->number == kNone;
    r.gate = *must_record ? free_gates.take() : shared->number;
    if (r.gate == kNone) return fail(KVO_E_INTERNAL, "more gates in use than there are ops");
    ++gates[r.gate].users;
    return KVO_OK;
}

void transfer_engine::state::leave_gate_number(uint32_t gate) {
    if (--gates[gate].users == 0) free_gates.give(gate);
}

void transfer_engine::state::leave_gate(op_record& r) {
    if (!r.has_gate()) return;
    leave_gate_number(r.gate);
    r.gate = kNone;
}

void transfer_engine::end_share(shared_gate* shared) {
    if (shared->number == kNone) return;
    --state_->n_shared_gates;
    state_->leave_gate_number(shared->number);
    shared->number = kNone;
}

status transfer_engine::submit(op_index op, void* stream, kvo_op_t* out, shared_gate* shared) {
    state& s = *state_;
    op_record& r = s.ops[raw(op)];
    // Nothing to order an empty op behind; its purge or its answer does not touch the stream.
    const bool needs_gate = stream != KVO_STREAM_IDLE && r.n_blocks > 0;
    bool must_record = false;
    status ok = KVO_OK;
    if (needs_gate) {
        ok = s.device.stream_check(s.device.context, stream);
        if (ok == KVO_OK) {
            const std::lock_guard lock(s.mutex);
            ok = s.take_gate(r, shared, &must_record);
        }
        if (ok == KVO_OK && must_record) {
            ok = s.device.event_record(s.device.context, s.gates[r.gate].event, stream);
        }
    }
    {
        const std::lock_guard lock(s.mutex);
        if (ok == KVO_OK && s.closed) ok = fail(KVO_E_STATE, "the cache is shut down");
        if (ok != KVO_OK) {
            if (ok == KVO_E_DEVICE_LOST) s.lost = ok;
            drop(op, ok);
            return ok;
        }
        if (must_record && shared != nullptr && s.n_shared_gates < state::kMostSharedGates) {
            shared->number = r.gate;
            ++s.gates[r.gate].users;
            ++s.n_shared_gates;
        }
        if (out != nullptr) *out = r.completion.op;
        s.accept(raw(op));
    }
    wake();
    return KVO_OK;
}

void transfer_engine::drop(op_index op, status why) {
    state& s = *state_;
    const uint32_t i = raw(op);
    op_record& r = s.ops[i];
    for (uint32_t p = r.first_piece; p != kNone; p = s.pieces[p].next_in_op) {
        if (s.pieces[p].state != piece_state::over) s.fences.leave(p);
        s.pieces[p].state = piece_state::over;
    }
    for (uint32_t b = r.first_block; b != kNone; b = s.blocks[b].next) {
        if (s.blocks[b].delivered) continue;
        s.blocks[b].delivered = true;
        s.blocks[b].block.result = why;
        s.owner.block_over(static_cast<kvo_op_kind_t>(r.completion.kind), r.tag, s.blocks[b].block);
    }
    if (r.n_after > 0) --s.n_waiting_after;
    s.free_records(i);
}

}  // namespace kvo

// Loads: blocks of a ticket's ready run to the device. Each op pins its own blocks, so that the
// ticket may be released at once.
#include <algorithm>
#include <array>

#include "cache/config.hpp"
#include "cache/state.hpp"

namespace kvo {

namespace {

struct load_request {
    kvo_ticket_t ticket{};
    uint32_t first = 0, n = 0;
    std::span<const kvo_blocks_t> dst;
    uint32_t groups = 0;
    std::array<uint32_t, kMaxGroups> skip_ids{};
};

status check_load(const kvo_load_options_t& o) {
    if (status s = check_struct("kvo_load_options_t", o.struct_size, o.api_version, sizeof(o));
        s != KVO_OK)
        return s;
    if (o.flags == KVO_OP_DETACHED)
        return fail(KVO_E_ARGUMENT,
                    "loads can't be detached: their completion is the "
                    "only sign that the bytes are there");
    if (o.flags != 0 || o.reserved != 0) {
        return fail(KVO_E_ARGUMENT, "unknown flags {:#x} or reserved {} not 0", o.flags,
                    o.reserved);
    }
    return KVO_OK;
}

// Adds blocks [begin, end) of the call to the op.
status add_blocks(cache::state& s, const load_request& r, op_index op, uint32_t begin,
                  uint32_t end) {
    const ticket_record* t = s.tickets.find(r.ticket.value);
    if (t == nullptr)
        return fail(KVO_E_HANDLE, "ticket {:#x} is released, revoked or of another cache",
                    r.ticket.value);
    if (uint64_t{r.first} + r.n > t->n_ready) {
        return fail(KVO_E_RANGE, "blocks {}..{} of a ready run of {}", r.first,
                    uint64_t{r.first} + r.n, t->n_ready);
    }
    if (status bad = s.check_attached(r.groups); bad != KVO_OK) return bad;
    if (s.resets_running > 0) return fail(KVO_E_DROPPED, "the cache is being reset");
    if (begin == end) return KVO_OK;
    auto at = s.runs.at(t->entries, r.first + begin);
    for (uint32_t i = begin; i < end; ++i, ++at) {
        const entry_id e{*at};
        if (s.index->state(e) != entry_state::ready) {
            return fail(KVO_E_DROPPED, "block {} has been removed since the match", r.first + i);
        }
        std::array<transfer_engine::group_piece, kMaxGroups> pieces{};
        for (const kvo_blocks_t& list : r.dst) {
            const uint32_t ratio = s.groups[list.group].ratio;
            pieces[list.group] = {s.index->slot(e, list.group),
                                  {list.ids + uint64_t{i} * ratio, ratio},
                                  i == 0 ? r.skip_ids[list.group] : 0};
        }
        s.index->pin(e);
        const status bad =
            s.engine->add_block(op, op_block{e, i, KVO_OK}, {pieces.data(), s.groups.size()});
        if (bad != KVO_OK) {
            s.index->unpin(e);
            return bad;
        }
    }
    return KVO_OK;
}

}  // namespace

status cache::load(kvo_ticket_t ticket, uint32_t first, uint32_t n,
                   std::span<const kvo_blocks_t> dst, void* stream,
                   const kvo_load_options_t& options, const call_extras& extras, kvo_op_t* op) {
    state& s = *state_;
    *op = kvo_op_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (status bad = check_load(options); bad != KVO_OK) return bad;
    load_request r{ticket, first, n, dst, 0, extras.skip_ids};
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (n > 0 && dst.empty())
        return fail(KVO_E_ARGUMENT, "{} blocks to load, but no block list", n);
    // Layouts are fixed since start: the ids are checked without the lock.
    lock.unlock();
    if (status bad = s.groups.check_lists(dst, n, true, &r.groups); bad != KVO_OK) return bad;
    if (status bad = s.check_stream(stream); bad != KVO_OK) return bad;
    lock.lock();
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (status bad = s.check_generation(extras.generation); bad != KVO_OK) return bad;

    op_request request;
    request.kind = KVO_OP_LOAD;
    request.user_data = options.user_data;
    request.deadline_ns = options.deadline_ns;
    op_index at{};
    uint64_t tag = 0;
    if (status bad = s.open_op(request, extras.owner_tag, r.groups, &at, &tag); bad != KVO_OK)
        return bad;
    status bad = add_blocks(s, r, at, 0, std::min(n, kKeysPerLock));
    for (uint32_t begin = kKeysPerLock; bad == KVO_OK && begin < n; begin += kKeysPerLock) {
        lock.unlock();
        lock.lock();
        bad = add_blocks(s, r, at, begin, begin + std::min(n - begin, kKeysPerLock));
    }
    return s.finish_submit(lock, at, tag, bad, stream, op);
}

}  // namespace kvo

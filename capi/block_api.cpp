// kvo_block.h: flat wrappers, no logic.
#include "guard.hpp"
#include "kvoffload/kvo_block.h"

using namespace kvo::capi;
using kvo::fail;

namespace {

// keys and where the caller's own blocks end.
kvo_status_t read_keys(const kvo_key_t* keys, uint32_t n, uint32_t n_local, std::span<const kvo_key_t>* out) {
    KVO_TRY(read_list("keys", keys, n, out));
    if (n_local > n) return fail(KVO_E_RANGE, "n_local is {}, but there are {} keys", n_local, n);
    return KVO_OK;
}

kvo_status_t read_store_options(const kvo_store_options_t* options, kvo_store_options_t* out) {
    const kvo_store_options_t defaults = KVO_STORE_OPTIONS_INIT;
    KVO_TRY(read_struct("kvo_store_options_t", options, defaults, true, out));
    KVO_TRY(check_no_bits("kvo_store_options_t.flags", out->flags, KVO_OP_DETACHED | KVO_STORE_UNCHAINED));
    KVO_TRY(check_no_bits("kvo_store_options_t.parents_held", out->parents_held, 1));
    KVO_TRY(check_no_bits("kvo_store_options_t.reserved", out->reserved, 0));
    std::span<const kvo_op_t> after;
    KVO_TRY(read_list("after", out->after, out->n_after, &after));
    if (out->n_after > 8) return fail(KVO_E_RANGE, "after: {} loads, at most 8", out->n_after);
    return KVO_OK;
}

}  // namespace

kvo_status_t kvo_probe(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                       uint32_t n_local, kvo_match_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {0, 0};
        std::span<const kvo_key_t> list;
        KVO_TRY(read_keys(keys, n, n_local, &list));
        return c.blocks->probe(ns, list, n_local, out);
    });
}

kvo_status_t kvo_match(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                       uint32_t n_local, const kvo_match_options_t* options, kvo_ticket_t* ticket,
                       kvo_match_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("ticket", ticket));
        KVO_TRY(check_not_null("out", out));
        *ticket = {0};
        *out = {0, 0};
        const kvo_match_options_t defaults = KVO_MATCH_OPTIONS_INIT;
        kvo_match_options_t full;
        KVO_TRY(read_struct("kvo_match_options_t", options, defaults, true, &full));
        std::span<const kvo_key_t> list;
        KVO_TRY(read_keys(keys, n, n_local, &list));
        return c.blocks->match(ns, list, n_local, full, {}, ticket, out);
    });
}

kvo_status_t kvo_ticket_poll(kvo_cache_t* cache, kvo_ticket_t ticket, kvo_match_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {0, 0};
        return c.blocks->ticket_poll(ticket, out);
    });
}

kvo_status_t kvo_ticket_trim(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t n_keep) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->ticket_trim(ticket, n_keep); });
}

kvo_status_t kvo_ticket_release(kvo_cache_t* cache, kvo_ticket_t ticket) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->ticket_release(ticket); });
}

kvo_status_t kvo_load(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t first, uint32_t n,
                      const kvo_blocks_t* dst, uint32_t n_groups, void* stream,
                      const kvo_load_options_t* options, kvo_op_t* op) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("op", op));
        *op = {0};
        const kvo_load_options_t defaults = KVO_LOAD_OPTIONS_INIT;
        kvo_load_options_t full;
        KVO_TRY(read_struct("kvo_load_options_t", options, defaults, true, &full));
        KVO_TRY(check_no_bits("kvo_load_options_t.flags", full.flags, 0));
        KVO_TRY(check_no_bits("kvo_load_options_t.reserved", full.reserved, 0));
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(dst, n_groups, &lists));
        return c.blocks->load(ticket, first, n, lists, stream, full, {}, op);
    });
}

kvo_status_t kvo_store(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                       const kvo_key_t* parent, const kvo_blocks_t* src, uint32_t n_groups, void* stream,
                       const kvo_store_options_t* options, kvo_store_result_t* result,
                       kvo_op_t* op) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        kvo_store_options_t full;
        KVO_TRY(read_store_options(options, &full));
        const bool is_detached = (full.flags & KVO_OP_DETACHED) != 0;
        if (!is_detached) KVO_TRY(check_not_null("op (and not KVO_OP_DETACHED)", op));
        if (!is_detached) KVO_TRY(check_not_null("result (and not KVO_OP_DETACHED)", result));
        kvo_store_result_t own_result{};
        kvo_op_t own_op{};
        if (result != nullptr) *result = {};
        if (op != nullptr) *op = {0};
        std::span<const kvo_key_t> list;
        KVO_TRY(read_keys(keys, n, 0, &list));
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(src, n_groups, &lists));
        return c.blocks->store(ns, list, parent, lists, stream, full, {},
                               result != nullptr ? result : &own_result, op != nullptr ? op : &own_op);
    });
}

kvo_status_t kvo_fence(kvo_cache_t* cache, const kvo_blocks_t* blocks, uint32_t n_groups, void* stream,
                       kvo_fence_mode_t mode) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        if (mode != KVO_FENCE_DROP && mode != KVO_FENCE_FINISH) {
            return fail(KVO_E_ARGUMENT, "fence mode {} is unknown", static_cast<int>(mode));
        }
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(blocks, n_groups, &lists));
        return c.blocks->fence(lists, stream, mode);
    });
}

kvo_status_t kvo_op_wait_stream(kvo_cache_t* cache, kvo_op_t op, void* stream, uint32_t flags) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_no_bits("flags", flags, KVO_WAIT_TRY));
        if (stream == KVO_STREAM_IDLE) {
            return fail(KVO_E_ARGUMENT, "KVO_STREAM_IDLE is no stream that could wait: use kvo_op_wait");
        }
        return c.blocks->op_wait_stream(op, stream, flags);
    });
}

kvo_status_t kvo_poll(kvo_cache_t* cache, kvo_completion_t* out, uint32_t max, uint64_t budget_ns,
                      uint32_t* n) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("n", n));
        *n = 0;
        if (max > 0) KVO_TRY(check_not_null("out", out));
        return c.blocks->poll(out, max, budget_ns, n);
    });
}

kvo_status_t kvo_op_test(kvo_cache_t* cache, kvo_op_t op, kvo_completion_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        return c.blocks->op_test(op, out);
    });
}

kvo_status_t kvo_op_wait(kvo_cache_t* cache, kvo_op_t op, uint64_t timeout_ns,
                         kvo_completion_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        return c.blocks->op_wait(op, timeout_ns, out);
    });
}

kvo_status_t kvo_op_cancel(kvo_cache_t* cache, kvo_op_t op) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->op_cancel(op); });
}

kvo_status_t kvo_pending(kvo_cache_t* cache, uint32_t* n) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("n", n));
        *n = 0;
        return c.blocks->pending(n);
    });
}

kvo_status_t kvo_event_fd(kvo_cache_t* cache, int* fd) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("fd", fd));
        *fd = -1;
        return c.blocks->event_fd(fd);
    });
}

kvo_status_t kvo_purge(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* chain, kvo_op_t* op) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("op", op));
        *op = {0};
        return c.blocks->purge(ns, chain, op);
    });
}

kvo_status_t kvo_reserve(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                         const kvo_key_t* parent, const kvo_store_options_t* options,
                         kvo_store_result_t* result, kvo_reservation_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("result", result));
        KVO_TRY(check_not_null("out", out));
        *result = {};
        *out = {0};
        kvo_store_options_t full;
        KVO_TRY(read_store_options(options, &full));
        std::span<const kvo_key_t> list;
        KVO_TRY(read_keys(keys, n, 0, &list));
        return c.blocks->reserve(ns, list, parent, full, result, out);
    });
}

kvo_status_t kvo_slot(kvo_cache_t* cache, kvo_reservation_t r, uint32_t i, uint32_t group, void** data,
                      uint64_t* bytes) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("data", data));
        KVO_TRY(check_not_null("bytes", bytes));
        *data = nullptr;
        *bytes = 0;
        return c.blocks->slot(r, i, group, data, bytes);
    });
}

kvo_status_t kvo_commit(kvo_cache_t* cache, kvo_reservation_t r, void* stream, kvo_op_t* op) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("op", op));
        *op = {0};
        return c.blocks->commit(r, stream, op);
    });
}

kvo_status_t kvo_abort(kvo_cache_t* cache, kvo_reservation_t r) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->abort(r); });
}

kvo_status_t kvo_view(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t i, uint32_t group,
                      const void** data, uint64_t* bytes) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("data", data));
        KVO_TRY(check_not_null("bytes", bytes));
        *data = nullptr;
        *bytes = 0;
        return c.blocks->view(ticket, i, group, data, bytes);
    });
}

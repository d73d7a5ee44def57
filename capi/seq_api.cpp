// kvo_seq.h: flat wrappers, no logic.
#include "guard.hpp"
#include "kvoffload/kvo_seq.h"

using namespace kvo::capi;
using kvo::fail;
using kvo::sequences;

kvo_status_t kvo_seq_begin(kvo_cache_t* cache, kvo_ns_t ns, const kvo_seq_options_t* options,
                           kvo_seq_t* out) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {0};
        const kvo_seq_options_t defaults = KVO_SEQ_OPTIONS_INIT;
        kvo_seq_options_t full;
        KVO_TRY(read_struct("kvo_seq_options_t", options, defaults, true, &full));
        KVO_TRY(check_no_bits("kvo_seq_options_t.flags", full.flags,
                              KVO_SEQ_NO_LOAD | KVO_SEQ_NO_STORE | KVO_SEQ_PROMPT_ONLY));
        std::span<const uint8_t> salt;
        KVO_TRY(read_list("salt", static_cast<const uint8_t*>(full.salt), full.salt_bytes, &salt));
        return s.begin(ns, full, out);
    });
}

kvo_status_t kvo_seq_extras(kvo_cache_t* cache, kvo_seq_t seq, uint32_t token_begin,
                            uint32_t token_count, const void* bytes, uint64_t n) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        std::span<const uint8_t> list;
        KVO_TRY(read_list("bytes", static_cast<const uint8_t*>(bytes), n, &list));
        return s.extras(seq, token_begin, token_count, bytes, n);
    });
}

kvo_status_t kvo_seq_lookup(kvo_cache_t* cache, kvo_seq_t seq, const uint32_t* tokens, uint32_t n,
                            uint32_t n_local, uint32_t* n_tokens, kvo_lookup_state_t* state) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        KVO_TRY(check_not_null("n_tokens", n_tokens));
        KVO_TRY(check_not_null("state", state));
        *n_tokens = 0;
        *state = KVO_LOOKUP_MISS;
        std::span<const uint32_t> list;
        KVO_TRY(read_list("tokens", tokens, n, &list));
        if (n_local > n) return fail(KVO_E_RANGE, "n_local is {}, but there are {} tokens", n_local, n);
        return s.lookup(seq, list, n_local, n_tokens, state);
    });
}

kvo_status_t kvo_seq_prefill(kvo_cache_t* cache, kvo_seq_t seq, const kvo_blocks_t* blocks,
                             uint32_t n_groups, uint32_t n_tokens, void* stream,
                             const kvo_load_options_t* options, kvo_op_t* op) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        KVO_TRY(check_not_null("op", op));
        *op = {0};
        const kvo_load_options_t defaults = KVO_LOAD_OPTIONS_INIT;
        kvo_load_options_t full;
        KVO_TRY(read_struct("kvo_load_options_t", options, defaults, true, &full));
        KVO_TRY(check_no_bits("kvo_load_options_t.flags", full.flags, 0));
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(blocks, n_groups, &lists));
        return s.prefill(seq, lists, n_tokens, stream, full, op);
    });
}

kvo_status_t kvo_seq_prefilled(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_computed,
                               const kvo_blocks_t* blocks, uint32_t n_groups, void* stream) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(blocks, n_groups, &lists));
        return s.prefilled(seq, n_computed, lists, stream);
    });
}

kvo_status_t kvo_seq_decode(kvo_cache_t* cache, kvo_seq_t seq, const uint32_t* new_tokens,
                            uint32_t n_new, uint32_t n_computed, const kvo_blocks_t* blocks,
                            uint32_t n_groups, void* stream) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        std::span<const uint32_t> tokens;
        KVO_TRY(read_list("new_tokens", new_tokens, n_new, &tokens));
        std::span<const kvo_blocks_t> lists;
        KVO_TRY(read_blocks(blocks, n_groups, &lists));
        return s.decode(seq, tokens, n_computed, lists, stream);
    });
}

kvo_status_t kvo_seq_decode_batch(kvo_cache_t* cache, kvo_decode_item_t* items, uint32_t n,
                                  void* stream) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        std::span<const kvo_decode_item_t> checked;
        KVO_TRY(read_list("items", static_cast<const kvo_decode_item_t*>(items), n, &checked));
        // Items that cannot be read answer for themselves; the others are done all the same.
        const auto check = [](const kvo_decode_item_t& item) -> kvo_status_t {
            std::span<const uint32_t> tokens;
            KVO_TRY(read_list("new_tokens", item.new_tokens, item.n_new, &tokens));
            std::span<const kvo_blocks_t> lists;
            return read_blocks(item.blocks, item.n_groups, &lists);
        };
        return s.decode_batch({items, n}, stream, check);
    });
}

kvo_status_t kvo_seq_rewind(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_tokens, void* stream) noexcept {
    return with_sequences(cache, [&](sequences& s) { return s.rewind(seq, n_tokens, stream); });
}

kvo_status_t kvo_seq_fork(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_tokens, kvo_seq_t* out) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {0};
        return s.fork(seq, n_tokens, out);
    });
}

kvo_status_t kvo_seq_preempt(kvo_cache_t* cache, kvo_seq_t seq) noexcept {
    return with_sequences(cache, [&](sequences& s) { return s.preempt(seq); });
}

kvo_status_t kvo_seq_end(kvo_cache_t* cache, kvo_seq_t seq) noexcept {
    return with_sequences(cache, [&](sequences& s) { return s.end(seq); });
}

kvo_status_t kvo_seq_info(kvo_cache_t* cache, kvo_seq_t seq, kvo_seq_info_t* out) noexcept {
    return with_sequences(cache, [&](sequences& s) {
        return write_struct("kvo_seq_info_t", out, [&](kvo_seq_info_t* full) { return s.info(seq, full); });
    });
}

kvo_status_t kvo_seq_key(kvo_cache_t* cache, kvo_seq_t seq, uint32_t index, kvo_key_t* out) noexcept {
    return with_sequences(cache, [&](sequences& s) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {};
        return s.key(seq, index, out);
    });
}

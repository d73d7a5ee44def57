// The life of a sequence: begin, content that tokens don't show, going back, fork, preempt, end.
#include <algorithm>

#include "cache/config.hpp"
#include "sequence/state.hpp"

namespace kvo {

namespace {

constexpr uint64_t kMaxSaltBytes = 4096;

status check_options(const kvo_seq_options_t& o) {
    status s = check_struct("kvo_seq_options_t", o.struct_size, o.api_version, sizeof(o));
    if (s != KVO_OK) return s;
    constexpr uint32_t kKnown = KVO_SEQ_NO_LOAD | KVO_SEQ_NO_STORE | KVO_SEQ_PROMPT_ONLY;
    if ((o.flags & ~kKnown) != 0)
        return fail(KVO_E_ARGUMENT, "unknown flags {:#x}", o.flags & ~kKnown);
    if (o.salt_bytes > kMaxSaltBytes || (o.salt_bytes > 0 && o.salt == nullptr)) {
        return fail(KVO_E_ARGUMENT, "salt is {} with {} bytes; at most {}",
                    o.salt == nullptr ? "NULL" : "given", o.salt_bytes, kMaxSaltBytes);
    }
    return KVO_OK;
}

}  // namespace

status sequences::begin(kvo_ns_t ns, const kvo_seq_options_t& options, kvo_seq_t* out) {
    state& s = *state_;
    *out = kvo_seq_t{};
    if (!s.started)
        return fail(KVO_E_STATE, "the cache is not started: call kvo_cache_start first");
    if (status bad = check_options(options); bad != KVO_OK) return bad;
    if (status bad = s.blocks.check_running(); bad != KVO_OK) return bad;
    std::string_view ns_name;
    if (status bad = s.blocks.ns_name(ns, &ns_name); bad != KVO_OK) return bad;
    const std::span salt{static_cast<const uint8_t*>(options.salt), options.salt_bytes};
    context_id context = kNoContext;
    if (!salt.empty()) {
        context = s.contexts.follow(kNoContext, 0, 0, salt);
        if (context == kNoContextRoom) {
            return fail(KVO_E_OPS_FULL,
                        "no room for a salt of {} bytes ({} of max_extra_bytes {} are free)",
                        salt.size(), s.contexts.free_bytes(), s.config.max_extra_bytes);
        }
    }
    kvo_seq_t handle{};
    sequence_record* r = s.table.take(&handle);
    if (r == nullptr) {
        s.contexts.let_go(context);
        return fail(KVO_E_OPS_FULL, "all {} sequences are open: end some, or raise max_seqs",
                    s.table.size());
    }
    r->ns = ns;
    r->flags = options.flags;
    r->max_store_tokens = options.max_store_tokens;
    constexpr uint64_t kDefaultPendingNs = 1'000'000'000;
    r->pending_deadline_ns = or_default(options.pending_deadline_ns, kDefaultPendingNs);
    r->context = context;
    r->generation = s.blocks.generation();
    const std::span fingerprint{static_cast<const uint8_t*>(s.config.fingerprint),
                                s.config.fingerprint_bytes};
    r->root = key_maker().root({s.config.hash_seed, s.block_tokens, fingerprint, ns_name, salt});
    *out = handle;
    return KVO_OK;
}

status sequences::extras(kvo_seq_t seq, uint32_t token_begin, uint32_t token_count,
                         const void* bytes, uint64_t n) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    if (token_begin < r.history.n_tokens) {
        return fail(KVO_E_ARGUMENT,
                    "token {} is known already ({} are): extras come before their tokens",
                    token_begin, r.history.n_tokens);
    }
    if (n == 0) {
        r.unknown_from = std::min(r.unknown_from, token_begin);
        return KVO_OK;
    }
    if (bytes == nullptr || token_count == 0) {
        return fail(KVO_E_ARGUMENT, "bytes is {}, token_count {}",
                    bytes == nullptr ? "NULL" : "given", token_count);
    }
    if (token_begin + uint64_t{token_count} > UINT32_MAX) {
        return fail(KVO_E_RANGE, "tokens {} + {} are more than a sequence can have", token_begin,
                    token_count);
    }
    const std::span content{static_cast<const uint8_t*>(bytes), n};
    if (s.contexts.has(r.context, token_begin, token_count, content))
        return KVO_OK;  // again, after a rewind
    const bool has_extras = r.context != kNoContext && s.contexts.at(r.context).is_extra();
    if (has_extras && token_begin < s.contexts.at(r.context).begin) {
        return fail(KVO_E_ARGUMENT,
                    "extras at token {} after those at {}: give them in rising order", token_begin,
                    s.contexts.at(r.context).begin);
    }
    const context_id longer = s.contexts.follow(r.context, token_begin, token_count, content);
    if (longer == kNoContextRoom) {
        // Without room for its identity it is content without one.
        r.unknown_from = std::min(r.unknown_from, token_begin);
        return fail(KVO_E_OPS_FULL,
                    "no room for extras of {} bytes ({} of max_extra_bytes {} are free): nothing "
                    "from token {} on is "
                    "matched or stored",
                    n, s.contexts.free_bytes(), s.config.max_extra_bytes, token_begin);
    }
    s.contexts.let_go(r.context);  // held by the longer one now
    r.context = longer;
    return KVO_OK;
}

void sequences::state::leave_device(sequence_record& r) {
    drop_hit(r);
    for (op_uses* uses : {&r.loads, &r.stores}) {
        while (uses->size() > 0) {
            watches.let_go((*uses)[0].watch);
            uses->remove(0);
        }
    }
    r.n_computed = r.n_offered = r.loaded_end = r.refused_at = r.restart_at = 0;
    r.chain_end = known_entry{};
    r.poisoned_from = kNever;
}

// Blocks behind token n_tokens are the sequence's no more, however their loads end. The one that it cuts in
// two still is: what is before the cut came from the load.
void sequences::state::limit_loads(sequence_record& r, uint32_t n_tokens) {
    const auto n_blocks = static_cast<uint32_t>(div_up(n_tokens, block_tokens));
    for (uint32_t i = r.loads.size(); i-- > 0;) {
        r.loads[i].limit_block = std::min(r.loads[i].limit_block, n_blocks);
        if (r.loads[i].first_block < n_blocks) continue;
        watches.let_go(r.loads[i].watch);
        r.loads.remove(i);
    }
}

status sequences::rewind(kvo_seq_t seq, uint32_t n_tokens, void* stream) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    if (n_tokens > r.history.n_tokens) {
        if (r.blind) return KVO_OK;
        return fail(KVO_E_RANGE, "n_tokens {}: {} are known", n_tokens, r.history.n_tokens);
    }
    s.settle(r);
    s.cut_tokens(r, n_tokens);
    r.blind = false;
    const uint32_t n_blocks = s.whole_blocks(n_tokens);
    status result = KVO_OK;
    // Copies that still read or write device blocks which the engine will write now.
    for (const op_uses* uses : {&r.loads, &r.stores}) {
        for (uint32_t i = 0; i < uses->size(); ++i) {
            const op_use& use = (*uses)[i];
            if (use.first_block + use.n_blocks <= n_blocks) continue;
            const uint32_t from = n_blocks - std::min(n_blocks, use.first_block);
            const status bad = s.blocks.fence_op(use.op, from, stream);
            if (result == KVO_OK) result = bad;
        }
    }
    if (result == KVO_OK) s.limit_loads(r, n_tokens);
    if (n_tokens <= r.poisoned_from) r.poisoned_from = kNever;
    return result;
}

status sequences::fork(kvo_seq_t seq, uint32_t n_tokens, kvo_seq_t* out) {
    state& s = *state_;
    *out = kvo_seq_t{};
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& from = h.record();
    if (n_tokens > from.history.n_tokens) {
        return fail(KVO_E_RANGE, "n_tokens {}: {} are known", n_tokens, from.history.n_tokens);
    }
    kvo_seq_t handle{};
    sequence_record* r = s.table.take(&handle);
    if (r == nullptr) {
        return fail(KVO_E_OPS_FULL, "all {} sequences are open: end some, or raise max_seqs",
                    s.table.size());
    }
    s.settle(from);
    static_cast<sequence_facts&>(*r) = static_cast<const sequence_facts&>(from);
    r->context = s.contexts.before(from.context, n_tokens);
    s.contexts.hold(r->context);
    if (r->unknown_from >= n_tokens) r->unknown_from = kNever;
    r->history = s.pages.share(from.history, n_tokens);
    r->blind = false;
    r->n_prompt = std::min(from.n_prompt, n_tokens);
    r->hit = prompt_hit{};
    r->stores = op_uses{};  // of device blocks that the fork shares, so that it will not write them
    r->n_stored_blocks = 0;
    for (uint32_t i = 0; i < r->loads.size(); ++i) s.watches.hold(r->loads[i].watch);
    // What the fork does not have is cut off as by a rewind.
    s.cut_progress(*r, n_tokens);
    r->n_loaded_tokens = std::min(r->n_loaded_tokens, n_tokens);
    s.limit_loads(*r, n_tokens);
    if (n_tokens <= r->poisoned_from) r->poisoned_from = kNever;
    *out = handle;
    return KVO_OK;
}

status sequences::preempt(kvo_seq_t seq) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    s.leave_device(h.record());
    h.record().generation = s.blocks.generation();
    return KVO_OK;
}

status sequences::end(kvo_seq_t seq) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    s.leave_device(r);
    s.pages.cut(r.history, 0);
    s.contexts.let_go(r.context);
    h.ended();
    s.table.give(&r);
    return KVO_OK;
}

status sequences::info(kvo_seq_t seq, kvo_seq_info_t* out) {
    state& s = *state_;
    if (status bad =
            check_struct("kvo_seq_info_t", out->struct_size, out->api_version, sizeof(*out));
        bad != KVO_OK) {
        return bad;
    }
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    s.settle(r);
    out->n_tokens = r.history.n_tokens;
    out->n_stored_blocks = r.n_stored_blocks;
    out->n_loaded_tokens = r.n_loaded_tokens;
    out->poisoned_from = r.poisoned_from;
    return KVO_OK;
}

status sequences::key(kvo_seq_t seq, uint32_t index, kvo_key_t* out) {
    state& s = *state_;
    *out = kvo_key_t{};
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    const uint32_t n = s.whole_blocks(std::min(r.history.n_tokens, r.unknown_from));
    if (index >= n) {
        return fail(KVO_E_RANGE, "block {}: {} whole blocks are known{}", index, n,
                    r.unknown_from < r.history.n_tokens ? " before content without identity" : "");
    }
    *out = s.key_of(r, index);
    return KVO_OK;
}

}  // namespace kvo

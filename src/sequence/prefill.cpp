// Loading what a lookup found, and hearing how loads and stores ended.
#include <algorithm>

#include "sequence/state.hpp"

namespace kvo {

status sequences::state::sub_lists(std::span<const kvo_blocks_t> lists, uint32_t first, uint32_t n,
                                   std::span<kvo_blocks_t> out) const {
    if (lists.size() > out.size()) {
        return fail(KVO_E_RANGE, "{} block lists for {} groups", lists.size(), n_groups);
    }
    for (size_t i = 0; i < lists.size(); ++i) {
        const kvo_blocks_t& list = lists[i];
        if (list.group >= n_groups)
            return fail(KVO_E_RANGE, "group {} of {}", list.group, n_groups);
        const uint64_t ratio = blocks.ratio(list.group);
        if ((first + uint64_t{n}) * ratio > list.n) {
            return fail(KVO_E_RANGE,
                        "the block table of group {} has {} ids; tokens up to {} need {}",
                        list.group, list.n, (first + uint64_t{n}) * block_tokens,
                        (first + uint64_t{n}) * ratio);
        }
        out[i] = {list.group, static_cast<uint32_t>(n * ratio), list.ids + first * ratio};
    }
    return KVO_OK;
}

// A block is loaded or stored whole.
status sequences::state::check_all_groups(std::span<const kvo_blocks_t> lists, uint32_t n) const {
    for (uint32_t g = 0; n > 0 && g < n_groups; ++g) {
        if (!blocks.on_device(g)) continue;
        const auto is_it = [g](const kvo_blocks_t& list) { return list.group == g; };
        if (std::any_of(lists.begin(), lists.end(), is_it)) continue;
        return fail(KVO_E_ARGUMENT, "no block list for group {}: give one for each device group", g);
    }
    return KVO_OK;
}

namespace {

status check_prefill(const sequences::state& s, const sequence_record& r, uint32_t n_tokens) {
    const uint32_t most = (r.hit.local_blocks + r.hit.n_ready) * s.block_tokens;
    if (n_tokens % s.block_tokens != 0) {
        return fail(KVO_E_ARGUMENT, "n_tokens {} is not a multiple of block_tokens {}", n_tokens,
                    s.block_tokens);
    }
    if (n_tokens > std::max(most, r.hit.n_local)) {
        return fail(KVO_E_RANGE, "n_tokens {}: the last lookup found {}", n_tokens,
                    std::max(most, r.hit.n_local));
    }
    if (r.poisoned_from != kNever) {
        return fail(KVO_E_STATE, "a load of this sequence failed: kvo_seq_rewind to token {} first",
                    r.poisoned_from);
    }
    if (r.loads.size() >= kMostLoads) {
        return fail(KVO_E_OPS_FULL,
                    "{} loads of this sequence are running; take their completions first",
                    r.loads.size());
    }
    return KVO_OK;
}

}  // namespace

status sequences::prefill(kvo_seq_t seq, std::span<const kvo_blocks_t> lists, uint32_t n_tokens,
                          void* stream, const kvo_load_options_t& options, kvo_op_t* op) {
    state& s = *state_;
    *op = kvo_op_t{};
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    s.settle(r);
    if (status bad = check_prefill(s, r, n_tokens); bad != KVO_OK) return bad;
    const uint32_t first = r.hit.local_blocks, end = s.whole_blocks(n_tokens);
    const uint32_t n = end > first ? end - first : 0;
    if (r.hit.ticket.value == 0) return KVO_OK;  // nothing to load, so no op

    std::array<kvo_blocks_t, kMaxGroups> dst;
    if (status bad = s.sub_lists(lists, first, n, {dst.data(), s.n_groups}); bad != KVO_OK)
        return bad;
    if (status bad = s.check_all_groups(lists, n); bad != KVO_OK) return bad;
    op_use use;
    call_extras extras;
    use.watch = s.watches.take(&extras.owner_tag);
    if (use.watch == kNoWatch) {
        return fail(KVO_E_OPS_FULL,
                    "all {} watches on ops are in use: take completions with kvo_poll",
                    s.watches.size());
    }
    // Device blocks that hold local tokens only are other sequences' too: they are not written
    // again.
    for (uint32_t g = 0; g < s.n_groups; ++g) {
        const uint32_t device_block_tokens = s.block_tokens / s.blocks.ratio(g);
        extras.skip_ids[g] = (r.hit.n_local - first * s.block_tokens) / device_block_tokens;
    }
    extras.generation = r.generation;
    const status bad =
        s.blocks.load(r.hit.ticket, 0, n, {dst.data(), lists.size()}, stream, options, extras, op);
    if (bad != KVO_OK) {
        s.watches.never_mind(use.watch);
        // Purged, reset or suspect since the lookup: the next one looks anew.
        const bool is_gone = bad == KVO_E_DROPPED || bad == KVO_E_HANDLE;
        if (is_gone) s.drop_hit(r);
        return is_gone ? fail(KVO_E_DROPPED, "blocks have left since the lookup: look up again, or compute")
                       : bad;
    }
    use.op = *op;
    use.first_block = first;
    use.n_blocks = n;
    use.limit_block = kNever;
    r.loads.add(use);
    r.loaded_end = std::max(r.loaded_end, first + n);
    s.drop_hit(r);  // the pins are the op's now
    return KVO_OK;
}

void sequences::state::settle(sequence_record& r) {
    uint32_t n_good = 0;
    for (uint32_t i = r.loads.size(); i-- > 0;) {
        const op_use use = r.loads[i];
        if (!watches.is_over(use.watch, &n_good)) continue;
        const uint32_t first_bad = use.first_block + n_good;
        r.n_loaded_tokens = n_good * block_tokens;
        if (n_good < use.n_blocks && first_bad < use.limit_block) {
            r.poisoned_from = std::min(r.poisoned_from, first_bad * block_tokens);
        }
        watches.let_go(use.watch);
        r.loads.remove(i);
    }
    for (uint32_t i = r.stores.size(); i-- > 0;) {
        if (!watches.is_over(r.stores[i].watch, &n_good)) continue;
        watches.let_go(r.stores[i].watch);
        r.stores.remove(i);
    }
}

}  // namespace kvo

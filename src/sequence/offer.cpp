// Storing: which whole blocks of a sequence are known, computed and to be kept, and handing them to
// the cache.
#include <algorithm>

#include "sequence/state.hpp"
#include "transfer/transfer_engine.hpp"

namespace kvo {

uint32_t sequences::state::n_storable_blocks(const sequence_record& r) const {
    if ((r.flags & KVO_SEQ_NO_STORE) != 0) return 0;
    const uint32_t settled = r.n_computed - std::min(r.n_computed, lag_tokens);
    uint32_t tokens = std::min({settled, r.history.n_tokens, r.unknown_from, r.max_store_tokens});
    if ((r.flags & KVO_SEQ_PROMPT_ONLY) != 0) tokens = std::min(tokens, r.n_prompt);
    return whole_blocks(tokens);
}

namespace {

// Capacity that is short now, or a load that failed: the cache keeps less, the request goes on.
bool is_no_concern_of_the_engine(status s) { return s <= -300 && s > -500; }

}  // namespace

status sequences::state::offer(sequence_record& r, std::span<const kvo_blocks_t> lists,
                               void* stream, shared_gate* gate) {
    const uint32_t end = n_storable_blocks(r);
    if (r.n_offered >= end || r.refused_at == end) return KVO_OK;
    settle(r);
    // Content of before a reset or behind a failed load is not what its tokens say.
    if (r.poisoned_from != kNever || r.generation != blocks.generation()) return KVO_OK;
    bool more = true;
    while (more && r.n_offered < end) {
        // The chain is offered from its beginning unless its last block is known to be here: what is
        // here costs nothing, and only so is the parent of a new block sure.
        if (r.chain_end.n_blocks != r.n_offered) {
            // Where it breaks again and again, only each time it has doubled.
            if (r.n_offered > 0 && end < r.restart_at) return KVO_OK;
            r.n_offered = 0;
            r.restart_at = 2 * end;
        }
        const uint32_t n = std::min(end - r.n_offered, kBlocksPerStore);
        if (status bad = offer_run(r, n, lists, stream, gate, &more); bad != KVO_OK) return bad;
    }
    if (!more && r.n_offered < end) r.refused_at = end;
    return KVO_OK;
}

status sequences::state::offer_run(sequence_record& r, uint32_t n,
                                   std::span<const kvo_blocks_t> lists, void* stream,
                                   shared_gate* gate, bool* more) {
    *more = false;
    const uint32_t first = r.n_offered;
    std::array<kvo_blocks_t, kMaxGroups> src;
    if (status bad = sub_lists(lists, first, n, {src.data(), n_groups}); bad != KVO_OK) return bad;
    if (status bad = check_all_groups(lists, n); bad != KVO_OK) return bad;
    op_use use;
    call_extras extras;
    if (r.stores.full() || (use.watch = watches.take(&extras.owner_tag)) == kNoWatch) return KVO_OK;

    block_list_room<kBlocksPerStore> room;
    const block_list list = room.list(first, n);
    fill(r, list);
    if (first == 0) r.chain_end = known_entry{};
    block_check check(*this, list, &r.chain_end);
    extras.who = &check;
    extras.gate = gate;
    extras.generation = r.generation;
    const kvo_key_t parent = first == 0 ? kvo_key_t{} : key_of(r, first - 1);
    kvo_op_t after[kMostLoads];
    uint8_t verdicts[kBlocksPerStore];
    kvo_store_options_t options = KVO_STORE_OPTIONS_INIT;
    options.flags = KVO_OP_DETACHED;
    options.after = after;
    for (uint32_t i = 0; i < r.loads.size(); ++i) after[options.n_after++] = r.loads[i].op;
    options.verdicts = verdicts;
    kvo_store_result_t result{};
    const status bad =
        blocks.store(r.ns, list.keys, first == 0 ? nullptr : &parent, {src.data(), lists.size()},
                     stream, options, extras, &result, &use.op);
    if (bad != KVO_OK) {
        watches.never_mind(use.watch);
        return is_no_concern_of_the_engine(bad) ? KVO_OK : bad;
    }
    use.first_block = first;
    use.n_blocks = n;
    r.stores.add(use);
    // For want of room only: asked again when there is one block more to store.
    const auto no_room = [](uint8_t v) { return v == KVO_STORE_FULL || v == KVO_STORE_NO_RECORD; };
    const auto n_done =
        static_cast<uint32_t>(std::find_if(verdicts, verdicts + n, no_room) - verdicts);
    r.n_stored_blocks = std::max(r.n_stored_blocks, r.chain_end.n_blocks);
    // An ancestor has left since; the device still has it.
    if (verdicts[0] == KVO_STORE_ORPHAN && first > 0) {
        r.chain_end = known_entry{};
        *more = true;
        return KVO_OK;
    }
    r.n_offered += n_done;
    *more = n_done == n;
    return KVO_OK;
}

status sequences::prefilled(kvo_seq_t seq, uint32_t n_computed, std::span<const kvo_blocks_t> lists,
                            void* stream) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    const uint32_t known = r.history.n_tokens;
    if (n_computed > known && !r.blind) {
        return fail(KVO_E_RANGE, "n_computed {}: {} tokens are known", n_computed, known);
    }
    r.n_computed = std::max(r.n_computed, std::min(n_computed, known));
    s.pass_hit(r);
    return s.offer(r, lists, stream);
}

status sequences::decode(kvo_seq_t seq, std::span<const uint32_t> new_tokens, uint32_t n_computed,
                         std::span<const kvo_blocks_t> lists, void* stream, shared_gate* gate) {
    state& s = *state_;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    if (r.blind)
        return fail(KVO_E_OPS_FULL, "tokens behind {} are not known: there was no room for them",
                    r.history.n_tokens);
    if (n_computed > r.history.n_tokens + new_tokens.size()) {
        return fail(KVO_E_RANGE, "n_computed {}: {} tokens are known, {} are new", n_computed,
                    r.history.n_tokens, new_tokens.size());
    }
    const uint32_t known_before = r.history.n_tokens, computed_before = r.n_computed;
    if (status bad = s.append(r, new_tokens); bad != KVO_OK) return bad;
    r.n_computed = std::max(r.n_computed, n_computed);
    const status bad = s.offer(r, lists, stream, gate);
    if (bad < 0 && bad > -300) {  // a refusal: the call may be made again, mended
        s.cut_tokens(r, known_before);
        r.n_computed = computed_before;
        return bad;
    }
    s.pass_hit(r);
    return bad;
}

status sequences::decode_batch(std::span<kvo_decode_item_t> items, void* stream, item_check check) {
    status first_bad = KVO_OK;
    shared_gate gate;
    char text[kErrorTextBytes];
    for (kvo_decode_item_t& item : items) {
        status s = check != nullptr ? check(item) : KVO_OK;
        if (s == KVO_OK) {
            s = decode(item.seq, {item.new_tokens, item.n_new}, item.n_computed,
                       {item.blocks, item.n_groups}, stream, &gate);
        }
        item.status = s;
        if (s == KVO_OK || first_bad != KVO_OK) continue;
        first_bad = s;
        fmt::format_to_n(text, sizeof text - 1, "item {}: {}", &item - items.data(), error_text())
            .out[0] = '\0';
    }
    state_->blocks.end_share(&gate);
    return first_bad == KVO_OK ? KVO_OK : fail(first_bad, "{}", static_cast<const char*>(text));
}

}  // namespace kvo

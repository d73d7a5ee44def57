// Before device blocks exist: what of a prompt can be had without computing; and loading it.
#include <algorithm>

#include "sequence/state.hpp"

namespace kvo {

void sequences::state::drop_hit(sequence_record& r) {
    // Stale when a purge or reset took the ticket away.
    if (r.hit.ticket.value != 0) (void)blocks.ticket_release(r.hit.ticket);
    r.hit = prompt_hit{};
}

status sequences::state::find_hit(sequence_record& r, uint32_t local, const block_list& list,
                                  uint64_t pending_until_ns, kvo_match_t* found) {
    fill(r, list);
    known_entry end;
    block_check check(*this, list, &end);
    kvo_match_options_t options = KVO_MATCH_OPTIONS_INIT;
    const uint64_t now = blocks.now_ns();
    options.pending_deadline_ns = pending_until_ns > now ? pending_until_ns - now : 0;
    kvo_ticket_t ticket{};
    const status bad = blocks.match(r.ns, list.keys, local, options, {&check, 0}, &ticket, found);
    // Only now, so that what both have stays pinned in between.
    drop_hit(r);
    if (bad != KVO_OK) return bad;
    r.hit.ticket = ticket;
    r.hit.local_blocks = local;
    r.hit.n_ready = found->n_ready;
    r.hit.pending_until_ns = pending_until_ns;
    return KVO_OK;
}

// The same question again: the ticket knows, unless it is gone or there is more to be had by now.
status sequences::state::look_again(sequence_record& r, uint32_t end, bool* is_answered,
                                    kvo_match_t* found) {
    *is_answered = false;
    if (r.hit.ticket.value == 0 || blocks.ticket_poll(r.hit.ticket, found) != KVO_OK) return KVO_OK;
    r.hit.n_ready = found->n_ready;
    const uint32_t next = r.hit.local_blocks + found->n_ready;
    if (found->n_ready == 0 && found->n_pending == 0) return KVO_OK;
    if (found->n_pending > 0 || next >= end) {
        *is_answered = true;
        return KVO_OK;
    }
    // next > 0: the run has at least one block.
    block_list_room<2> room;
    const block_list list = room.list(next - 1, 2);
    fill(r, list);
    kvo_match_t more{};
    const status bad = blocks.probe(r.ns, list.keys, 1, &more);
    *is_answered = more.n_ready + more.n_pending == 0;
    return bad;
}

status sequences::lookup(kvo_seq_t seq, std::span<const uint32_t> tokens, uint32_t n_local,
                         uint32_t* n_tokens, kvo_lookup_state_t* answer) {
    state& s = *state_;
    *n_tokens = 0;
    *answer = KVO_LOOKUP_MISS;
    hook h(s, seq);
    if (h.result() != KVO_OK) return h.result();
    sequence_record& r = h.record();
    const auto n = static_cast<uint32_t>(tokens.size());
    if (tokens.size() > UINT32_MAX)
        return fail(KVO_E_RANGE, "{} tokens in one sequence", tokens.size());
    if (n_local > n) return fail(KVO_E_RANGE, "n_local is {}, but there are {} tokens", n_local, n);
    *n_tokens = std::min(n_local, n > 0 ? n - 1 : 0);
    s.settle(r);
    if (status bad = s.set_prompt(r, tokens); bad != KVO_OK) return bad;
    if (s.is_untouched(r) && n_local == 0) r.generation = s.blocks.generation();

    // One prompt token at least is left to compute; behind content without identity nothing is
    // known.
    const uint32_t end = n == 0 ? 0 : s.whole_blocks(std::min(n - 1, r.unknown_from));
    const uint32_t local = s.whole_blocks(n_local);
    if ((r.flags & KVO_SEQ_NO_LOAD) != 0 || local >= end || r.generation != s.blocks.generation()) {
        s.drop_hit(r);
        r.hit.n_local = n_local;  // prefill may still be called with it, and loads nothing
        return KVO_OK;
    }
    kvo_match_t found{};
    bool is_answered = false;
    status bad = KVO_OK;
    // Patience is for the question, however often it is asked.
    uint64_t until = add_ns(s.blocks.now_ns(), r.pending_deadline_ns);
    if (r.hit.n_local == n_local && r.hit.n_prompt == n) {
        if (r.hit.pending_until_ns != 0) until = r.hit.pending_until_ns;
        bad = s.look_again(r, end, &is_answered, &found);
    }
    if (bad == KVO_OK && !is_answered) {
        if (end <= kBlocksOnStack) {
            block_list_room<kBlocksOnStack> room;
            bad = s.find_hit(r, local, room.list(0, end), until, &found);
        } else {
            const std::lock_guard lock(s.scratch_mutex);
            const block_list& all = s.scratch;
            bad = s.find_hit(
                r, local, {0, all.keys.first(end), all.pages.first(end), all.contexts.first(end)},
                until, &found);
        }
    }
    if (bad != KVO_OK) return bad;
    r.hit.n_local = n_local;
    r.hit.n_prompt = n;
    r.hit.pending_until_ns = until;
    if (found.n_ready > 0) *n_tokens = (local + found.n_ready) * s.block_tokens;
    *answer = found.n_pending > 0 ? KVO_LOOKUP_PENDING
              : found.n_ready > 0 ? KVO_LOOKUP_READY
                                  : KVO_LOOKUP_MISS;
    return KVO_OK;
}

}  // namespace kvo

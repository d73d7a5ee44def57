// Tokens of a sequence become blocks with keys, each hashed once, and are laid out for calls of the
// cache.
#include <algorithm>

#include "sequence/state.hpp"

namespace kvo {

namespace {

constexpr uint32_t kPagesAtOnce = 64;

}  // namespace

status sequences::state::append(sequence_record& r, std::span<const uint32_t> tokens) {
    const uint32_t before = r.history.n_tokens;
    if (before + tokens.size() > config.max_seq_tokens || !pages.append(r.history, tokens)) {
        r.blind = true;
        return fail(KVO_E_OPS_FULL,
                    "no room for {} more tokens behind {} (room for {} in all open sequences: "
                    "max_seq_tokens); "
                    "nothing behind token {} of this sequence is stored from now on",
                    tokens.size(), before, config.max_seq_tokens, before);
    }
    hash_blocks(r, whole_blocks(before),
                whole_blocks(std::min(r.history.n_tokens, r.unknown_from)));
    return KVO_OK;
}

status sequences::state::set_prompt(sequence_record& r, std::span<const uint32_t> tokens) {
    const auto n = static_cast<uint32_t>(tokens.size());
    const uint32_t known = r.history.n_tokens;
    const uint32_t common = pages.common(r.history, tokens);
    if (common < std::min(n, known)) {
        return fail(KVO_E_ARGUMENT,
                    "token {} is not the one that was given before; kvo_seq_rewind to it first",
                    common);
    }
    if (n < r.n_computed) {
        return fail(KVO_E_ARGUMENT, "{} tokens, but {} are computed; kvo_seq_rewind first", n,
                    r.n_computed);
    }
    if (n < known) {
        cut_tokens(r, n);
        limit_loads(r, n);
    }
    if (n > known) {
        if (status bad = append(r, tokens.subspan(known)); bad != KVO_OK) return bad;
    }
    r.blind = false;
    r.n_prompt = n;
    return KVO_OK;
}

void sequences::state::hash_blocks(sequence_record& r, uint32_t first, uint32_t end) {
    if (first >= end) return;
    const uint32_t per_page = pages.blocks_per_page();
    kvo_key_t parent = first == 0 ? r.root : key_of(r, first - 1);
    key_maker maker;
    uint32_t at_once[kPagesAtOnce];
    while (first < end) {
        const uint32_t first_page = first / per_page;
        const uint32_t n_pages = std::min((end - 1) / per_page + 1 - first_page, kPagesAtOnce);
        pages.list(r.history, first_page, {at_once, n_pages});
        const uint32_t stop = std::min(end, (first_page + n_pages) * per_page);
        for (; first < stop; ++first) {
            const uint32_t page = at_once[first / per_page - first_page];
            block_identity block;
            block.parent = &parent;
            block.tokens = pages.tokens(page, first % per_page);
            block.begin = first * block_tokens;
            block.context = contexts.before(r.context, (first + 1) * block_tokens);
            kvo_key_t key = maker.block(block, contexts);
            if (weaken.change != nullptr) weaken.change(weaken.context, block, &key);
            pages.key(page, first % per_page) = key;
            parent = key;
        }
    }
}

kvo_key_t sequences::state::key_of(const sequence_record& r, uint32_t block) {
    uint32_t page = kNoPage;
    pages.list(r.history, block / pages.blocks_per_page(), {&page, 1});
    return pages.key(page, block % pages.blocks_per_page());
}

void sequences::state::fill(const sequence_record& r, const block_list& list) {
    const auto n = static_cast<uint32_t>(list.keys.size());
    if (n == 0) return;
    const uint32_t per_page = pages.blocks_per_page();
    const uint32_t first_page = list.first / per_page;
    pages.list(r.history, first_page,
               list.pages.first((list.first + n - 1) / per_page + 1 - first_page));
    context_id context = r.context;
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t index = list.first + i;
        list.keys[i] = pages.key(list.pages[index / per_page - first_page], index % per_page);
        context = contexts.before(context, (index + 1) * block_tokens);
        list.contexts[i] = context;
    }
}

void sequences::state::cut_progress(sequence_record& r, uint32_t n_tokens) {
    const uint32_t n_blocks = whole_blocks(n_tokens);
    r.n_computed = std::min(r.n_computed, n_tokens);
    r.n_offered = std::min(r.n_offered, n_blocks);
    if (r.chain_end.n_blocks > n_blocks) {
        r.chain_end = known_entry{};
        r.restart_at = 0;
    }
    r.loaded_end = std::min(r.loaded_end, n_blocks);
    r.refused_at = 0;
}

void sequences::state::cut_tokens(sequence_record& r, uint32_t n_tokens) {
    pages.cut(r.history, n_tokens);
    cut_progress(r, n_tokens);
    // Its pins are for tokens that may not come again.
    if (r.hit.ticket.value != 0 && r.hit.n_prompt > n_tokens) drop_hit(r);
}

}  // namespace kvo

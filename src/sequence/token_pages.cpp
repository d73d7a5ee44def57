#include "sequence/token_pages.hpp"

#include <algorithm>
#include <cstring>

namespace kvo {

namespace {

constexpr uint32_t kPageTokens = 128;  // about; a page holds whole blocks
constexpr uint32_t kPagesPerLock = 64;

}  // namespace

uint32_t token_pages::page_tokens_for(uint32_t block_tokens) {
    return block_tokens >= kPageTokens ? block_tokens : kPageTokens / block_tokens * block_tokens;
}

// Each history may leave its last page nearly empty.
uint32_t token_pages::pages_for(const size& s) {
    constexpr uint64_t kMost = 1u << 30;
    const uint64_t full = std::min(div_up(s.max_tokens, page_tokens_for(s.block_tokens)), kMost);
    return static_cast<uint32_t>(full + std::min<uint64_t>(std::min(s.max_tokens, kMost), s.max_histories));
}

uint64_t token_pages::bytes_for(const size& s) {
    const uint64_t n = pages_for(s);
    const uint64_t per_page = page_tokens_for(s.block_tokens);
    return region::bytes_for<uint32_t>(n * per_page) +
           region::bytes_for<kvo_key_t>(n * (per_page / s.block_tokens)) +
           2 * region::bytes_for<uint32_t>(n);
}

void token_pages::place(region& memory, const size& s) {
    block_tokens_ = s.block_tokens;
    page_tokens_ = page_tokens_for(s.block_tokens);
    blocks_per_page_ = page_tokens_ / block_tokens_;
    n_pages_ = pages_for(s);
    tokens_ = memory.take<uint32_t>(uint64_t{n_pages_} * page_tokens_);
    keys_ = memory.take<kvo_key_t>(uint64_t{n_pages_} * blocks_per_page_);
    before_ = memory.take<uint32_t>(n_pages_);
    refs_ = memory.take<uint32_t>(n_pages_);
    for (uint32_t i = 0; i < n_pages_; ++i) before_[i] = i + 1 < n_pages_ ? i + 1 : kNoPage;
    first_free_ = n_pages_ > 0 ? 0 : kNoPage;
    n_free_ = n_pages_;
}

uint32_t token_pages::free_pages() const {
    const std::lock_guard lock(mutex_);
    return n_free_;
}

bool token_pages::must_copy_tail(const token_history& h) const {
    return h.n_tokens % page_tokens_ != 0 && refs_[h.tail] > 1;
}

bool token_pages::append(token_history& h, std::span<const uint32_t> tokens) {
    if (tokens.empty()) return true;
    const uint64_t end = h.n_tokens + tokens.size();
    if (end > UINT32_MAX) return false;
    uint32_t tail = h.tail, copy = kNoPage;
    uint32_t n_new = pages_of(static_cast<uint32_t>(end)) - pages_of(h.n_tokens);
    {
        const std::lock_guard lock(mutex_);
        const uint32_t n_copies = must_copy_tail(h) ? 1 : 0;
        if (n_new + n_copies > n_free_) return false;
        n_free_ -= n_new + n_copies;
        if (n_copies > 0) {
            copy = tail = first_free_;
            first_free_ = before_[copy];
            refs_[copy] = 1;
        }
        // The list of free pages, turned round: the tail's reference passes to the first new page.
        for (; n_new > 0; --n_new) {
            const uint32_t fresh = first_free_;
            first_free_ = before_[fresh];
            before_[fresh] = tail;
            refs_[fresh] = 1;
            tail = fresh;
        }
    }
    if (copy != kNoPage) own_tail(h, copy);
    // Written from the end, because that is how the pages are linked.
    uint32_t at = static_cast<uint32_t>(end);
    for (uint32_t page = tail; at > h.n_tokens; page = before_[page]) {
        const uint32_t page_begin = (at - 1) / page_tokens_ * page_tokens_;
        const uint32_t from = std::max(page_begin, h.n_tokens);
        std::memcpy(tokens_of(page) + (from - page_begin), tokens.data() + (from - h.n_tokens),
                    (at - from) * sizeof(uint32_t));
        at = from;
    }
    h = {tail, static_cast<uint32_t>(end)};
    return true;
}

// The tail is shared: its contents up to the end of h, in a page of h's own.
void token_pages::own_tail(token_history& h, uint32_t copy) {
    const uint32_t n = h.n_tokens % page_tokens_;
    std::memcpy(tokens_of(copy), tokens_of(h.tail), n * sizeof(uint32_t));
    std::memcpy(&key(copy, 0), &key(h.tail, 0), n / block_tokens_ * sizeof(kvo_key_t));
    const std::lock_guard lock(mutex_);
    before_[copy] = before_[h.tail];
    if (!drop(h.tail) && before_[copy] != kNoPage) ++refs_[before_[copy]];
    h.tail = copy;
}

bool token_pages::drop(uint32_t page) {
    if (--refs_[page] > 0) return false;
    before_[page] = first_free_;
    first_free_ = page;
    ++n_free_;
    return true;
}

void token_pages::cut(token_history& h, uint32_t n_tokens) {
    const uint32_t keep = pages_of(n_tokens);
    uint32_t n = pages_of(h.n_tokens);
    while (n > keep) {
        const std::lock_guard lock(mutex_);
        for (uint32_t i = 0; i < kPagesPerLock && n > keep; ++i, --n) {
            const uint32_t before = before_[h.tail];
            const bool freed = drop(h.tail);
            h.tail = before;
            if (freed) continue;
            // Others keep the page and with it their reference to the one before.
            if (keep == 0) {
                h = {};
                return;
            }
            ++refs_[before];
        }
    }
    h.n_tokens = n_tokens;
}

token_history token_pages::share(const token_history& h, uint32_t n_tokens) {
    token_history out{h.tail, n_tokens};
    if (n_tokens == 0) return {};
    const std::lock_guard lock(mutex_);
    for (uint32_t n = pages_of(h.n_tokens); n > pages_of(n_tokens); --n)
        out.tail = before_[out.tail];
    ++refs_[out.tail];
    return out;
}

void token_pages::list(const token_history& h, uint32_t first, std::span<uint32_t> pages) const {
    uint32_t page = h.tail;
    uint32_t i = pages_of(h.n_tokens);
    const uint32_t end = first + static_cast<uint32_t>(pages.size());
    for (; i > end; --i) page = before_[page];
    for (; i > first; --i) {
        pages[i - 1 - first] = page;
        page = before_[page];
    }
}

uint32_t token_pages::common(const token_history& h, std::span<const uint32_t> tokens) const {
    auto n = static_cast<uint32_t>(std::min<uint64_t>(h.n_tokens, tokens.size()));
    uint32_t first_different = n;
    uint32_t page = h.tail;
    for (uint32_t i = pages_of(h.n_tokens); i > pages_of(n); --i) page = before_[page];
    while (n > 0) {
        const uint32_t page_begin = (n - 1) / page_tokens_ * page_tokens_;
        const auto given = tokens.subspan(page_begin, n - page_begin);
        const uint32_t* kept = tokens_of(page);
        if (std::memcmp(kept, given.data(), given.size_bytes()) != 0) {
            const auto [a, b] = std::mismatch(given.begin(), given.end(), kept);
            first_different = page_begin + static_cast<uint32_t>(a - given.begin());
        }
        n = page_begin;
        page = before_[page];
    }
    return first_different;
}

}  // namespace kvo

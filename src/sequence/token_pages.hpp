// Where the tokens of sequences are kept, with the key of each whole block beside them: fixed
// pages, each for a few blocks, linked from the newest to the oldest. Forks share pages: a page is
// counted, and written only while exactly one history ends in it; who else wants to go on gets a
// copy. No allocation after place(). Different histories: any threads (a lock of its own guards
// links and counts). One history: one thread at a time.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "kvoffload/kvo_base.h"
#include "sequence/region.hpp"

namespace kvo {

constexpr uint32_t kNoPage = UINT32_MAX;

// The tokens of one sequence: n_tokens of them, the last in page `tail`.
struct token_history {
    uint32_t tail = kNoPage;
    uint32_t n_tokens = 0;
};

class token_pages {
public:
    // max_tokens in any number of up to max_histories unshared histories; see room() for what one
    // takes.
    struct size {
        uint32_t block_tokens = 1;
        uint32_t max_histories = 1;
        uint64_t max_tokens = 0;
    };
    static uint64_t bytes_for(const size& s);
    void place(region& memory, const size& s);

    uint32_t page_tokens() const { return page_tokens_; }
    uint32_t blocks_per_page() const { return blocks_per_page_; }
    uint32_t free_pages() const;
    uint32_t n_pages() const { return n_pages_; }

    // All of them or, when there is no room, none (false).
    bool append(token_history& h, std::span<const uint32_t> tokens);
    void cut(token_history& h, uint32_t n_tokens);
    token_history share(const token_history& h, uint32_t n_tokens);

    // Pages first..first+n of the history, oldest first.
    void list(const token_history& h, uint32_t first, std::span<uint32_t> pages) const;
    // Of block i of its page.
    std::span<const uint32_t> tokens(uint32_t page, uint32_t i) const {
        return {tokens_of(page) + uint64_t{i} * block_tokens_, block_tokens_};
    }
    kvo_key_t& key(uint32_t page, uint32_t i) {
        return keys_[uint64_t{page} * blocks_per_page_ + i];
    }
    // Where the first token that differs is; the length of the shorter one when none does.
    uint32_t common(const token_history& h, std::span<const uint32_t> tokens) const;

private:
    static uint32_t page_tokens_for(uint32_t block_tokens);
    static uint32_t pages_for(const size& s);
    uint32_t* tokens_of(uint32_t page) const { return tokens_ + uint64_t{page} * page_tokens_; }
    uint32_t pages_of(uint32_t n_tokens) const {
        return static_cast<uint32_t>(div_up(n_tokens, page_tokens_));
    }
    bool must_copy_tail(const token_history& h) const;
    void own_tail(token_history& h, uint32_t copy);
    // One reference to the page goes; true when that freed it, so that its reference to the page
    // before is the caller's now.
    bool drop(uint32_t page);

    mutable std::mutex mutex_;
    uint32_t* tokens_ = nullptr;
    kvo_key_t* keys_ = nullptr;
    uint32_t* before_ = nullptr;  // the page before; of free pages the next free one
    uint32_t* refs_ = nullptr;    // histories that end here and pages that follow
    uint32_t block_tokens_ = 1, page_tokens_ = 1, blocks_per_page_ = 1;
    uint32_t n_pages_ = 0, first_free_ = kNoPage, n_free_ = 0;
};

}  // namespace kvo

// What each entry of the index really holds, for the exact check: the tokens of the block, its
// place in its sequence and its context. Together with the parent link that the index keeps this is
// the block's whole identity, whatever its key. Arrays by entry id, fixed at place(). Every call is
// made under the cache lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "cache/cache.hpp"
#include "sequence/context_store.hpp"
#include "sequence/token_pages.hpp"

namespace kvo {

// One block as a sequence knows it.
struct known_block {
    std::span<const uint32_t> tokens;
    uint32_t index = 0;  // in its sequence
    context_id context = kNoContext;
};

class identity_store final : public identity_keeper {
public:
    explicit identity_store(context_store& contexts) : contexts_(contexts) {}
    static uint64_t bytes_per_entry(uint32_t block_tokens) {
        return uint64_t{block_tokens} * sizeof(uint32_t) + sizeof(about);
    }
    // Beside that, once.
    static uint64_t bytes_fixed() { return region::bytes_for<uint8_t>(1) * 2; }
    void place(region& memory, uint32_t n_entries, uint32_t block_tokens) {
        block_tokens_ = block_tokens;
        tokens_ = memory.take<uint32_t>(uint64_t{n_entries} * block_tokens);
        about_ = memory.take<about>(n_entries);
    }

    bool same(entry_id e, const known_block& b) const {
        const about& a = about_[raw(e)];
        return a.place == b.index + 1 && a.context == b.context &&
               std::memcmp(tokens_of(e), b.tokens.data(), b.tokens.size_bytes()) == 0;
    }
    void keep(entry_id e, const known_block& b) {
        forget(e);
        contexts_.hold(b.context);
        about_[raw(e)] = {b.context, b.index + 1, ++last_serial_};
        std::memcpy(tokens_of(e), b.tokens.data(), b.tokens.size_bytes());
    }
    void forget(entry_id e) override {
        about& a = about_[raw(e)];
        if (a.place == 0) return;  // stored by key alone
        contexts_.let_go(a.context);
        a = about{};
    }

    bool keeps(entry_id e) const override { return about_[raw(e)].place != 0; }
    // Names what is kept of an entry now; another one after it was forgotten. 0: nothing is.
    uint64_t serial(entry_id e) const { return about_[raw(e)].serial; }

private:
    struct about {  // all zero: nothing known
        context_id context;
        uint32_t place;  // index in its sequence + 1
        uint64_t serial;
    };
    uint32_t* tokens_of(entry_id e) const { return tokens_ + uint64_t{raw(e)} * block_tokens_; }

    context_store& contexts_;
    uint32_t* tokens_ = nullptr;
    about* about_ = nullptr;
    uint32_t block_tokens_ = 1;
    uint64_t last_serial_ = 0;
};

}  // namespace kvo

// A model whose every KV byte shows what it was computed from: the state of a position is a hash of all
// tokens up to it, kept in "device blocks" like KV. The next token is read back through the block table,
// so a wrong, stale or foreign block gives a different answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "serve/scheduler.hpp"

namespace engine_test {

class fake_model {
public:
    fake_model(uint32_t n_blocks, uint32_t block_tokens, uint32_t n_vocab)
        : block_tokens_(block_tokens), n_vocab_(n_vocab), state_(size_t{n_blocks} * block_tokens) {}

    void forward(std::span<const engine::work_item> items, std::span<uint32_t> next) {
        for (size_t i = 0; i < items.size(); ++i) {
            const auto& item = items[i];
            for (uint32_t t = 0; t < item.tokens.size(); ++t) {
                step(item, item.first_position + t, item.tokens[t]);
            }
            const auto last = item.first_position + static_cast<uint32_t>(item.tokens.size()) - 1;
            if (item.wants_token) next[i] = token_after(item, last);
        }
    }
    engine::forward_fn function() {
        return [this](auto items, auto next) { forward(items, next); };
    }
    std::vector<uint64_t>& memory() { return state_; }

private:
    uint64_t& at(const engine::work_item& item, uint32_t position) {
        const uint32_t block = item.table[position / block_tokens_];
        return state_[size_t{block} * block_tokens_ + position % block_tokens_];
    }
    void step(const engine::work_item& item, uint32_t position, uint32_t token) {
        uint64_t h = position == 0 ? 1 : at(item, position - 1);
        h = (h ^ token) * 0x9E3779B97F4A7C15u;
        at(item, position) = h ^ (h >> 31);
    }
    // Every position of the prefix counts, as in attention.
    uint32_t token_after(const engine::work_item& item, uint32_t last) {
        uint64_t h = 0;
        for (uint32_t p = 0; p <= last; ++p) h = (h + at(item, p)) * 0xBF58476D1CE4E5B9u;
        return static_cast<uint32_t>((h >> 33) % n_vocab_);
    }

    uint32_t block_tokens_, n_vocab_;
    std::vector<uint64_t> state_;
};

}  // namespace engine_test

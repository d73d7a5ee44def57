// The forward pass over a paged KV cache. One thread calls it; inside it uses the shared thread team. Holds
// scratch memory for one tile; owns neither model nor pool.
#pragma once

#include <span>
#include <vector>

#include "model/aligned_floats.hpp"
#include "model/attention.hpp"
#include "model/kv_pool.hpp"
#include "model/model.hpp"
#include "model/work_item.hpp"

namespace engine {

class forward_pass {
public:
    forward_pass(const model& m, kv_pool& pool);

    // Writes KV of all tokens of all items; next[i] gets the most likely token after item i if it wants one
    // (the lowest id of equals). logits, if given, gets n_vocab floats per item that wants one, in order.
    void run(std::span<const work_item> items, std::span<uint32_t> next, std::vector<float>* logits = nullptr);
    forward_fn function() {
        return [this](auto items, auto next) { run(items, next); };
    }

private:
    struct row {  // one token of the tile
        const work_item* item;
        uint32_t token, position;
        uint32_t item_index;
        bool wants_token;
    };
    void run_tile(std::span<const row> rows, std::span<uint32_t> next, std::vector<float>* logits);
    void run_layer(uint32_t layer, std::span<const row> rows, uint32_t columns);
    void prepare_turn(uint32_t position, float* turns) const;
    void turn(float* heads, uint32_t n_heads, const float* turns) const;
    void answer(std::span<const row> rows, std::span<uint32_t> next, std::vector<float>* logits);

    const model& model_;
    kv_pool& pool_;
    std::vector<float> frequencies_;
    std::vector<float> x_, normed_, q_, k_, v_, mixed_, head_, turns_;
    aligned_floats gate_, up_;
    std::vector<attention_scratch> scratch_;  // one per thread
};

}  // namespace engine

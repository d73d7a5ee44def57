// The KV memory of the engine, in blocks of block_tokens tokens. Two layouts: block first (all layers' K and V
// of a block in one range: one part) and layer first (one array per layer and K or V: 2 * layers parts).
// Owns the memory; no locking: the engine's thread and the offload library use blocks in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.hpp"

namespace engine {

enum class kv_layout { block_first, layer_first };

class kv_pool {
public:
    kv_pool(const model_shape& shape, uint32_t n_blocks, uint32_t block_tokens, kv_layout layout);

    uint32_t n_blocks() const { return n_blocks_; }
    uint32_t block_tokens() const { return block_tokens_; }
    uint64_t block_bytes() const { return uint64_t{n_layers_} * 2 * row_floats_ * sizeof(float); }

    // K or V of one layer of one block: block_tokens rows of kv_width floats.
    float* keys(uint32_t layer, uint32_t block) { return at(2 * layer, block); }
    float* values(uint32_t layer, uint32_t block) { return at(2 * layer + 1, block); }

    // Where the blocks lie, for whoever copies them: block b of a part is `bytes` at base + b * stride.
    struct part {
        void* base;
        uint64_t stride, bytes;
    };
    std::vector<part> parts();

private:
    float* at(uint32_t row, uint32_t block) {
        const uint64_t place = layout_ == kv_layout::block_first
                                   ? (uint64_t{block} * 2 * n_layers_ + row)
                                   : (uint64_t{row} * n_blocks_ + block);
        return memory_.data() + place * row_floats_;
    }

    uint32_t n_layers_, n_blocks_, block_tokens_;
    uint64_t row_floats_;  // K or V of one layer of one block
    kv_layout layout_;
    std::vector<float> memory_;
};

}  // namespace engine

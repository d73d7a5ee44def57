// Attention of one token over its whole past in a paged KV cache. The order of every sum depends on the
// token's position and on nothing else. Pure function over memory; any thread with scratch of its own.
#pragma once

#include <cstdint>
#include <span>

#include "model/aligned_floats.hpp"
#include "model/kv_pool.hpp"

namespace engine {

// Scratch of one thread.
struct attention_scratch {
    aligned_floats scores;
};

// query, out: n_heads x head_dim floats.
void attend(const model_shape& shape, kv_pool& pool, uint32_t layer, std::span<const uint32_t> table,
            uint32_t position, const float* query, float* out, attention_scratch* scratch);

// Sum of products in a fixed order.
float dot(const float* a, const float* b, uint32_t n);

}  // namespace engine

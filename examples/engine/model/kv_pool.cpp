#include "model/kv_pool.hpp"

namespace engine {

kv_pool::kv_pool(const model_shape& shape, uint32_t n_blocks, uint32_t block_tokens, kv_layout layout)
    : n_layers_(shape.n_layers),
      n_blocks_(n_blocks),
      block_tokens_(block_tokens),
      row_floats_(uint64_t{block_tokens} * shape.kv_width()),
      layout_(layout),
      memory_(row_floats_ * 2 * n_layers_ * n_blocks) {}

std::vector<kv_pool::part> kv_pool::parts() {
    const uint64_t row_bytes = row_floats_ * sizeof(float);
    if (layout_ == kv_layout::block_first) return {{memory_.data(), block_bytes(), block_bytes()}};
    std::vector<part> all;
    for (uint32_t row = 0; row < 2 * n_layers_; ++row) all.push_back({at(row, 0), row_bytes, row_bytes});
    return all;
}

}  // namespace engine

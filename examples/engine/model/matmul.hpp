// Matrix products over token tiles. Activations are column-major: a token is a contiguous column. A tile has
// 4, 8, 16, 32, 64 or 128 columns, padded with zeros; Eigen's kernel then treats every column by the same
// sequence of operations, so a token's result depends neither on its place in the tile, nor on the tile's
// size, nor on its neighbours (tests/unit/engine checks that bit for bit). Rows are dealt to threads in fixed
// chunks, so the number of threads changes nothing either.
#pragma once

#include <cstdint>
#include <vector>

namespace engine {

constexpr uint32_t kTileTokens = 128;  // the weights are packed anew for each tile

// The smallest tile that holds n tokens, n <= kTileTokens.
uint32_t tile_columns(uint32_t n);

// out (rows x columns) = w (rows x inner, row-major) * in (inner x columns). columns: a tile size.
void multiply(const std::vector<float>& w, uint32_t rows, uint32_t inner, const float* in, uint32_t columns,
              float* out);

}  // namespace engine

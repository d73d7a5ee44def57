#include "model/matmul.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "model/thread_team.hpp"

namespace engine {

namespace {

// A multiple of the kernel's row block (24 with AVX2, 12 or 8 with others), and small enough for the packed
// rows to stay in the cache.
constexpr uint32_t kRowChunk = 96;

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using column_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

}  // namespace

uint32_t tile_columns(uint32_t n) {
    uint32_t columns = 4;
    while (columns < n) columns *= 2;
    return columns;
}

void multiply(const std::vector<float>& w, uint32_t rows, uint32_t inner, const float* in, uint32_t columns,
              float* out) {
    const Eigen::Map<const row_major> weights(w.data(), rows, inner);
    const Eigen::Map<const column_major> input(in, inner, columns);
    Eigen::Map<column_major> result(out, rows, columns);
    thread_team::shared().run((rows + kRowChunk - 1) / kRowChunk, [&](uint32_t c, uint32_t) {
        const uint32_t first = c * kRowChunk;
        const uint32_t n = std::min(kRowChunk, rows - first);
        result.middleRows(first, n).noalias() = weights.middleRows(first, n) * input;
    });
}

}  // namespace engine

#include "model/attention.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace engine {

namespace {

// Eight floats at once (GCC and Clang); without such instructions the compiler does the same one by one.
typedef float eight __attribute__((vector_size(32)));
constexpr uint32_t kLanes = 8;
constexpr uint32_t kAlign = 16;  // floats to which a row of scores is padded

eight load(const float* p) {
    eight v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

float sum_of(eight v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

// scores[p] for all positions of one head.
void score_head(kv_pool& pool, uint32_t layer, std::span<const uint32_t> table, uint32_t n, uint32_t kv_width,
                uint32_t head_at, uint32_t head_dim, const float* query, float scale, float* scores) {
    const uint32_t bt = pool.block_tokens();
    for (uint32_t first = 0; first < n; first += bt) {
        const float* keys = pool.keys(layer, table[first / bt]) + head_at;
        const uint32_t n_here = std::min(bt, n - first);
        for (uint32_t p = 0; p < n_here; ++p, keys += kv_width) scores[first + p] = dot(query, keys, head_dim) * scale;
    }
}

// Turns scores into weights. The row is aligned and padded, so that every element goes through the same
// vector instructions wherever the row ends.
void soften(float* scores, uint32_t n, uint32_t n_padded) {
    std::fill(scores + n, scores + n_padded, -std::numeric_limits<float>::infinity());
    Eigen::Map<Eigen::ArrayXf, Eigen::Aligned32> row(scores, n_padded);
    const float most = *std::max_element(scores, scores + n);
    row = (row - most).exp();
    eight sums = {};
    for (uint32_t p = 0; p < n_padded; p += kLanes) sums += load(scores + p);
    const float sum = sum_of(sums);
    for (uint32_t p = 0; p < n; ++p) scores[p] /= sum;
}

// out += weights[p] * values[p], position by position, for kLanes dimensions at a time.
void mix_head(kv_pool& pool, uint32_t layer, std::span<const uint32_t> table, uint32_t n, uint32_t kv_width,
              uint32_t head_at, uint32_t head_dim, const float* weights, float* out) {
    const uint32_t bt = pool.block_tokens();
    constexpr uint32_t kStep = 4 * kLanes;
    uint32_t d = 0;
    for (; d + kStep <= head_dim; d += kStep) {
        eight a = {}, b = {}, c = {}, e = {};
        for (uint32_t first = 0; first < n; first += bt) {
            const float* v = pool.values(layer, table[first / bt]) + head_at + d;
            const uint32_t n_here = std::min(bt, n - first);
            for (uint32_t p = 0; p < n_here; ++p, v += kv_width) {
                const float w = weights[first + p];
                a += w * load(v);
                b += w * load(v + kLanes);
                c += w * load(v + 2 * kLanes);
                e += w * load(v + 3 * kLanes);
            }
        }
        std::memcpy(out + d, &a, sizeof a);
        std::memcpy(out + d + kLanes, &b, sizeof b);
        std::memcpy(out + d + 2 * kLanes, &c, sizeof c);
        std::memcpy(out + d + 3 * kLanes, &e, sizeof e);
    }
    for (; d < head_dim; ++d) {
        float sum = 0;
        for (uint32_t p = 0; p < n; ++p) {
            sum += weights[p] * pool.values(layer, table[p / bt])[head_at + size_t{p % bt} * kv_width + d];
        }
        out[d] = sum;
    }
}

}  // namespace

float dot(const float* a, const float* b, uint32_t n) {
    eight first = {}, second = {};
    uint32_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
        first += load(a + i) * load(b + i);
        second += load(a + i + kLanes) * load(b + i + kLanes);
    }
    float sum = sum_of(first + second);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

void attend(const model_shape& s, kv_pool& pool, uint32_t layer, std::span<const uint32_t> table,
            uint32_t position, const float* query, float* out, attention_scratch* scratch) {
    const uint32_t n = position + 1, n_padded = (n + kAlign - 1) / kAlign * kAlign;
    const uint32_t group = s.n_heads / s.n_kv_heads, kv_width = s.kv_width();
    const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
    scratch->scores.resize(n_padded);
    float* const scores = scratch->scores.data();
    for (uint32_t h = 0; h < s.n_heads; ++h) {
        const uint32_t at = h / group * s.head_dim;
        score_head(pool, layer, table, n, kv_width, at, s.head_dim, query + size_t{h} * s.head_dim, scale, scores);
        soften(scores, n, n_padded);
        mix_head(pool, layer, table, n, kv_width, at, s.head_dim, scores, out + size_t{h} * s.head_dim);
    }
}

}  // namespace engine

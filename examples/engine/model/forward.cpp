#include "model/forward.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/matmul.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace engine {

namespace {

int n_threads() {
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1;
#endif
}
int this_thread() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

constexpr uint32_t kLanes = 16;

// Sixteen running sums in a fixed order, so that the compiler may use vectors and the result never changes.
float dot(const float* a, const float* b, uint32_t n) {
    float sums[kLanes] = {};
    uint32_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (uint32_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
    }
    for (uint32_t l = 0; i < n; ++i, ++l) sums[l] += a[i] * b[i];
    for (uint32_t step = kLanes / 2; step > 0; step /= 2) {
        for (uint32_t l = 0; l < step; ++l) sums[l] += sums[l + step];
    }
    return sums[0];
}

void normalise(const float* x, const std::vector<float>& weight, float epsilon, float* out) {
    const auto n = static_cast<uint32_t>(weight.size());
    const float scale = 1.0f / std::sqrt(dot(x, x, n) / static_cast<float>(n) + epsilon);
    for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void normalise_tile(const std::vector<float>& x, const std::vector<float>& weight, float epsilon, uint32_t n,
                    std::vector<float>* out) {
    const size_t width = weight.size();
    for (uint32_t t = 0; t < n; ++t) normalise(&x[t * width], weight, epsilon, &(*out)[t * width]);
}

void add_tile(std::vector<float>* x, const std::vector<float>& y, size_t n) {
    for (size_t i = 0; i < n; ++i) (*x)[i] += y[i];
}

uint32_t most_likely(const float* logits, uint32_t n) {
    return static_cast<uint32_t>(std::max_element(logits, logits + n) - logits);
}

}  // namespace

forward_pass::forward_pass(const model& m, kv_pool& pool) : model_(m), pool_(pool) {
    const model_shape& s = m.shape;
    for (uint32_t i = 0; i < s.rope_dims / 2; ++i) {
        const double power = -2.0 * i / s.rope_dims;
        frequencies_.push_back(static_cast<float>(std::pow(static_cast<double>(s.rope_base), power)));
    }
    const size_t q_width = size_t{s.n_heads} * s.head_dim;
    x_.resize(size_t{s.width} * kTileTokens);
    normed_.resize(x_.size());
    q_.resize(q_width * kTileTokens);
    mixed_.resize(q_.size());
    k_.resize(size_t{s.kv_width()} * kTileTokens);
    v_.resize(k_.size());
    gate_.resize(size_t{s.hidden} * kTileTokens);
    up_.resize(gate_.size());
    scores_.resize(static_cast<size_t>(n_threads()));
}

void forward_pass::run(std::span<const work_item> items, std::span<uint32_t> next, std::vector<float>* logits) {
    std::vector<row> rows;
    for (uint32_t i = 0; i < items.size(); ++i) {
        for (uint32_t t = 0; t < items[i].tokens.size(); ++t) {
            const bool is_last = t + 1 == items[i].tokens.size();
            rows.push_back({&items[i], items[i].tokens[t], items[i].first_position + t, i,
                            is_last && items[i].wants_token});
        }
    }
    // Tokens of one sequence stay in order, so a tile finds the KV of earlier tiles in the pool.
    for (size_t first = 0; first < rows.size(); first += kTileTokens) {
        const size_t n = std::min<size_t>(kTileTokens, rows.size() - first);
        run_tile(std::span(rows).subspan(first, n), next, logits);
    }
}

void forward_pass::run_tile(std::span<const row> rows, std::span<uint32_t> next, std::vector<float>* logits) {
    const uint32_t width = model_.shape.width;
    const uint32_t columns = tile_columns(static_cast<uint32_t>(rows.size()));
    std::fill(x_.begin(), x_.begin() + static_cast<std::ptrdiff_t>(size_t{width} * columns), 0.0f);
    for (size_t t = 0; t < rows.size(); ++t) {
        const uint32_t token = rows[t].token % model_.shape.n_vocab;
        std::memcpy(&x_[t * width], &model_.embedding[size_t{token} * width], width * sizeof(float));
    }
    for (uint32_t layer = 0; layer < model_.shape.n_layers; ++layer) run_layer(layer, rows, columns);
    answer(rows, next, logits);
}

// Rotation of neighbouring pairs (the order that Llama weights have in GGUF).
void forward_pass::turn(float* heads, uint32_t n_heads, uint32_t position) const {
    for (uint32_t i = 0; i < frequencies_.size(); ++i) {
        const float angle = static_cast<float>(position) * frequencies_[i];
        const float c = std::cos(angle), s = std::sin(angle);
        for (uint32_t h = 0; h < n_heads; ++h) {
            float* pair = heads + size_t{h} * model_.shape.head_dim + 2 * i;
            const float a = pair[0], b = pair[1];
            pair[0] = a * c - b * s;
            pair[1] = a * s + b * c;
        }
    }
}

void forward_pass::run_layer(uint32_t layer, std::span<const row> rows, uint32_t columns) {
    const model_shape& s = model_.shape;
    const layer_weights& w = model_.layers[layer];
    const uint32_t q_width = s.n_heads * s.head_dim, kv_width = s.kv_width();
    const uint32_t bt = pool_.block_tokens();
    const auto n = static_cast<uint32_t>(rows.size());

    // Padding columns are normalised too: zeros stay zeros.
    normalise_tile(x_, w.attention_norm, s.norm_epsilon, columns, &normed_);
    multiply(w.q, q_width, s.width, normed_.data(), columns, q_.data());
    multiply(w.k, kv_width, s.width, normed_.data(), columns, k_.data());
    multiply(w.v, kv_width, s.width, normed_.data(), columns, v_.data());
    for (uint32_t t = 0; t < n; ++t) {
        const row& r = rows[t];
        turn(&q_[size_t{t} * q_width], s.n_heads, r.position);
        turn(&k_[size_t{t} * kv_width], s.n_kv_heads, r.position);
        const uint32_t block = r.item->table[r.position / bt];
        const size_t at = size_t{r.position % bt} * kv_width;
        std::memcpy(pool_.keys(layer, block) + at, &k_[size_t{t} * kv_width], kv_width * sizeof(float));
        std::memcpy(pool_.values(layer, block) + at, &v_[size_t{t} * kv_width], kv_width * sizeof(float));
    }
    std::fill(mixed_.begin() + static_cast<std::ptrdiff_t>(size_t{n} * q_width),
              mixed_.begin() + static_cast<std::ptrdiff_t>(size_t{columns} * q_width), 0.0f);
#pragma omp parallel for schedule(dynamic, 1)
    for (int t = 0; t < static_cast<int>(n); ++t) {
        const auto at = static_cast<size_t>(t);
        attend(layer, rows[at], &q_[at * q_width], &mixed_[at * q_width],
               &scores_[static_cast<size_t>(this_thread())]);
    }
    multiply(w.o, s.width, q_width, mixed_.data(), columns, normed_.data());
    add_tile(&x_, normed_, size_t{s.width} * columns);

    normalise_tile(x_, w.ffn_norm, s.norm_epsilon, columns, &normed_);
    multiply(w.gate, s.hidden, s.width, normed_.data(), columns, gate_.data());
    multiply(w.up, s.hidden, s.width, normed_.data(), columns, up_.data());
    const auto n_hidden = static_cast<int>(s.hidden * columns);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n_hidden; ++i) {
        const auto at = static_cast<size_t>(i);
        gate_[at] = gate_[at] / (1.0f + std::exp(-gate_[at])) * up_[at];
    }
    multiply(w.down, s.width, s.hidden, gate_.data(), columns, normed_.data());
    add_tile(&x_, normed_, size_t{s.width} * columns);
}

// One token over its whole past, position by position: the order of all sums depends on nothing else.
void forward_pass::attend(uint32_t layer, const row& r, const float* query, float* out,
                          std::vector<float>* scores) {
    const model_shape& s = model_.shape;
    const uint32_t bt = pool_.block_tokens(), group = s.n_heads / s.n_kv_heads, n = r.position + 1;
    const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
    scores->resize(size_t{n} * s.n_heads);
    for (uint32_t p = 0; p < n; ++p) {
        const float* keys = pool_.keys(layer, r.item->table[p / bt]) + size_t{p % bt} * s.kv_width();
        for (uint32_t h = 0; h < s.n_heads; ++h) {
            const float* key = keys + size_t{h / group} * s.head_dim;
            (*scores)[size_t{h} * n + p] = dot(query + size_t{h} * s.head_dim, key, s.head_dim) * scale;
        }
    }
    std::fill(out, out + size_t{s.n_heads} * s.head_dim, 0.0f);
    for (uint32_t h = 0; h < s.n_heads; ++h) {
        float* row_scores = scores->data() + size_t{h} * n;
        const float most = *std::max_element(row_scores, row_scores + n);
        float sum = 0;
        for (uint32_t p = 0; p < n; ++p) sum += row_scores[p] = std::exp(row_scores[p] - most);
        for (uint32_t p = 0; p < n; ++p) row_scores[p] /= sum;
    }
    for (uint32_t p = 0; p < n; ++p) {
        const float* values = pool_.values(layer, r.item->table[p / bt]) + size_t{p % bt} * s.kv_width();
        for (uint32_t h = 0; h < s.n_heads; ++h) {
            const float weight = (*scores)[size_t{h} * n + p];
            const float* value = values + size_t{h / group} * s.head_dim;
            float* to = out + size_t{h} * s.head_dim;
            for (uint32_t i = 0; i < s.head_dim; ++i) to[i] += weight * value[i];
        }
    }
}

void forward_pass::answer(std::span<const row> rows, std::span<uint32_t> next, std::vector<float>* logits) {
    const model_shape& s = model_.shape;
    std::vector<const row*> wanted;
    for (size_t t = 0; t < rows.size(); ++t) {
        if (!rows[t].wants_token) continue;
        normalise(&x_[t * s.width], model_.output_norm, s.norm_epsilon, &normed_[wanted.size() * s.width]);
        wanted.push_back(&rows[t]);
    }
    if (wanted.empty()) return;
    const uint32_t columns = tile_columns(static_cast<uint32_t>(wanted.size()));
    std::fill(normed_.begin() + static_cast<std::ptrdiff_t>(wanted.size() * s.width),
              normed_.begin() + static_cast<std::ptrdiff_t>(size_t{columns} * s.width), 0.0f);
    head_.resize(size_t{s.n_vocab} * columns);
    multiply(model_.head(), s.n_vocab, s.width, normed_.data(), columns, head_.data());
    for (size_t k = 0; k < wanted.size(); ++k) {
        const float* row_logits = &head_[k * s.n_vocab];
        next[wanted[k]->item_index] = most_likely(row_logits, s.n_vocab);
        if (logits != nullptr) logits->insert(logits->end(), row_logits, row_logits + s.n_vocab);
    }
}

}  // namespace engine

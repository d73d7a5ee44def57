#include "model/forward.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/matmul.hpp"
#include "model/thread_team.hpp"

namespace engine {

namespace {

constexpr uint32_t kPacketFloats = 16;  // of the widest vectors there are

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

// gate = gate * sigmoid(gate) * up. Rows of whole packets at aligned addresses go through the matrix library's
// vector exp; others element by element. Which of the two depends on the model's shape only.
void mix_gate(float* gate, const float* up, uint32_t n) {
    if (n % kPacketFloats != 0) {
        for (uint32_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
        return;
    }
    Eigen::Map<Eigen::ArrayXf, Eigen::AlignedMax> g(gate, n);
    const Eigen::Map<const Eigen::ArrayXf, Eigen::AlignedMax> u(up, n);
    g = g / (1.0f + (-g).exp()) * u;
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
    up_.resize(size_t{s.hidden} * kTileTokens);
    turns_.resize(size_t{s.rope_dims} * kTileTokens);
    scratch_.resize(thread_team::shared().size());
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
    for (size_t t = 0; t < rows.size(); ++t) prepare_turn(rows[t].position, &turns_[t * model_.shape.rope_dims]);
    for (uint32_t layer = 0; layer < model_.shape.n_layers; ++layer) run_layer(layer, rows, columns);
    answer(rows, next, logits);
}

// Cosine and sine of each pair's angle at a position: the same for all heads and layers.
void forward_pass::prepare_turn(uint32_t position, float* turns) const {
    for (uint32_t i = 0; i < frequencies_.size(); ++i) {
        const float angle = static_cast<float>(position) * frequencies_[i];
        turns[2 * i] = std::cos(angle);
        turns[2 * i + 1] = std::sin(angle);
    }
}

// Rotation of neighbouring pairs (the order that Llama weights have in GGUF).
void forward_pass::turn(float* heads, uint32_t n_heads, const float* turns) const {
    for (uint32_t i = 0; i < frequencies_.size(); ++i) {
        const float c = turns[2 * i], s = turns[2 * i + 1];
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
        turn(&q_[size_t{t} * q_width], s.n_heads, &turns_[size_t{t} * s.rope_dims]);
        turn(&k_[size_t{t} * kv_width], s.n_kv_heads, &turns_[size_t{t} * s.rope_dims]);
        const uint32_t block = r.item->table[r.position / bt];
        const size_t at = size_t{r.position % bt} * kv_width;
        std::memcpy(pool_.keys(layer, block) + at, &k_[size_t{t} * kv_width], kv_width * sizeof(float));
        std::memcpy(pool_.values(layer, block) + at, &v_[size_t{t} * kv_width], kv_width * sizeof(float));
    }
    std::fill(mixed_.begin() + static_cast<std::ptrdiff_t>(size_t{n} * q_width),
              mixed_.begin() + static_cast<std::ptrdiff_t>(size_t{columns} * q_width), 0.0f);
    thread_team::shared().run(n, [&](uint32_t t, uint32_t member) {
        attend(s, pool_, layer, rows[t].item->table, rows[t].position, &q_[size_t{t} * q_width],
               &mixed_[size_t{t} * q_width], &scratch_[member]);
    });
    multiply(w.o, s.width, q_width, mixed_.data(), columns, normed_.data());
    add_tile(&x_, normed_, size_t{s.width} * columns);

    normalise_tile(x_, w.ffn_norm, s.norm_epsilon, columns, &normed_);
    multiply(w.gate, s.hidden, s.width, normed_.data(), columns, gate_.data());
    multiply(w.up, s.hidden, s.width, normed_.data(), columns, up_.data());
    thread_team::shared().run(columns, [&](uint32_t t, uint32_t) {
        mix_gate(&gate_[size_t{t} * s.hidden], &up_[size_t{t} * s.hidden], s.hidden);
    });
    multiply(w.down, s.width, s.hidden, gate_.data(), columns, normed_.data());
    add_tile(&x_, normed_, size_t{s.width} * columns);
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

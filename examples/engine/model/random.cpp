#include <fmt/core.h>

#include <cmath>

#include "model/model.hpp"

namespace engine {

namespace {

// splitmix64 (Steele, Lea, Flood 2014): the same numbers on every machine, unlike <random>'s distributions.
struct generator {
    uint64_t state;
    float next() {  // uniform in [-1, 1)
        state += 0x9E3779B97F4A7C15u;
        uint64_t x = state;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        x ^= x >> 31;
        return static_cast<float>(x >> 40) * (2.0f / 16777216.0f) - 1.0f;
    }
    std::vector<float> matrix(uint64_t rows, uint64_t columns) {
        std::vector<float> m(rows * columns);
        const float scale = std::sqrt(3.0f / static_cast<float>(columns));  // unit variance out
        for (float& x : m) x = next() * scale;
        return m;
    }
    std::vector<float> norm(uint64_t n) {
        std::vector<float> v(n);
        for (float& x : v) x = 1.0f + 0.1f * next();
        return v;
    }
};

}  // namespace

model_shape small_shape() {
    model_shape s;
    s.n_layers = 4;
    s.width = 128;
    s.n_heads = 4;
    s.n_kv_heads = 2;
    s.head_dim = s.rope_dims = 32;
    s.hidden = 256;
    s.n_vocab = 512;
    s.context = 4096;
    return s;
}

std::unique_ptr<model> random_model(uint64_t seed, const model_shape& s) {
    auto m = std::make_unique<model>();
    m->name = fmt::format("random weights, seed {}", seed);
    m->shape = s;
    generator g{seed};
    const uint64_t q = uint64_t{s.n_heads} * s.head_dim;
    m->embedding = g.matrix(s.n_vocab, s.width);
    for (float& x : m->embedding) x *= 4;  // else the tied head can hardly tell tokens apart
    m->output_norm = g.norm(s.width);
    for (uint32_t i = 0; i < s.n_layers; ++i) {
        layer_weights l;
        l.attention_norm = g.norm(s.width);
        l.q = g.matrix(q, s.width);
        l.k = g.matrix(s.kv_width(), s.width);
        l.v = g.matrix(s.kv_width(), s.width);
        l.o = g.matrix(s.width, q);
        l.ffn_norm = g.norm(s.width);
        l.gate = g.matrix(s.hidden, s.width);
        l.up = g.matrix(s.hidden, s.width);
        l.down = g.matrix(s.width, s.hidden);
        m->layers.push_back(std::move(l));
    }
    return m;
}

}  // namespace engine

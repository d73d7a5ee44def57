// A Llama-family model: its shape and its weights as floats. Loaded from GGUF or made from a seed. Immutable
// once made; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gguf/gguf.hpp"

namespace engine {

struct model_shape {
    uint32_t n_layers = 0, width = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, hidden = 0, n_vocab = 0;
    uint32_t rope_dims = 0;       // leading dimensions of a head that turn
    float rope_base = 10000.0f;
    float norm_epsilon = 1e-5f;
    uint32_t context = 0;
    uint32_t kv_width() const { return n_kv_heads * head_dim; }
};

// Matrices are row-major: rows = outputs, columns = inputs.
struct layer_weights {
    std::vector<float> attention_norm, q, k, v, o, ffn_norm, gate, up, down;
};

struct model {
    std::string name;
    model_shape shape;
    std::vector<float> embedding;  // n_vocab x width
    std::vector<layer_weights> layers;
    std::vector<float> output_norm;
    std::vector<float> output;     // n_vocab x width; empty: the embedding is used
    const std::vector<float>& head() const { return output.empty() ? embedding : output; }
};

// null with *error when the file is no Llama-family model that we can run.
std::unique_ptr<model> load_model(const gguf_file& file, std::string* error);
// The same seed gives the same weights everywhere. For tests and for machines without a model file.
std::unique_ptr<model> random_model(uint64_t seed, const model_shape& shape);
model_shape small_shape();

}  // namespace engine

#include <fmt/core.h>

#include <optional>

#include "model/model.hpp"

namespace engine {

namespace {

// Reads metadata and tensors of one file and remembers the first thing that is wrong.
class loader {
public:
    explicit loader(const gguf_file& file) : file_(file) {}

    std::unique_ptr<model> run() {
        auto m = std::make_unique<model>();
        m->name = text("general.name").value_or(file_.path());
        const auto architecture = text("general.architecture");
        if (architecture != "llama") {
            bad(fmt::format("general.architecture is '{}'; 'llama' is read", architecture.value_or("missing")));
            return nullptr;
        }
        m->shape = shape();
        if (!error_.empty()) return nullptr;
        read_weights(*m);
        return error_.empty() ? std::move(m) : nullptr;
    }
    const std::string& error() const { return error_; }

private:
    void bad(const std::string& reason) {
        if (error_.empty()) error_ = fmt::format("{}: {}", file_.path(), reason);
    }
    std::optional<std::string> text(const char* key) const {
        const gguf_value* v = file_.find(key);
        if (v == nullptr || !std::holds_alternative<std::string>(*v)) return std::nullopt;
        return std::get<std::string>(*v);
    }
    std::optional<uint32_t> whole(const char* key) {
        const gguf_value* v = file_.find(key);
        if (v == nullptr) return std::nullopt;
        if (std::holds_alternative<gguf_array>(*v)) {
            bad(fmt::format("per-layer head counts are not supported ({})", key));
            return std::nullopt;
        }
        const auto* u = std::get_if<uint64_t>(v);
        const auto* i = std::get_if<int64_t>(v);
        const int64_t n = u != nullptr ? static_cast<int64_t>(*u) : i != nullptr ? *i : -1;
        if (n < 0 || n > 1 << 24) {
            bad(fmt::format("{} is no sensible whole number", key));
            return std::nullopt;
        }
        return static_cast<uint32_t>(n);
    }
    uint32_t needed(const char* key) {
        const auto n = whole(key);
        if (!n || *n == 0) bad(fmt::format("{} is missing or zero", key));
        return std::max(1u, n.value_or(1));
    }
    float real(const char* key, float fallback) const {
        const gguf_value* v = file_.find(key);
        return v != nullptr && std::holds_alternative<double>(*v) ? static_cast<float>(std::get<double>(*v)) : fallback;
    }

    model_shape shape() {
        model_shape s;
        s.n_layers = needed("llama.block_count");
        s.width = needed("llama.embedding_length");
        s.hidden = needed("llama.feed_forward_length");
        s.n_heads = needed("llama.attention.head_count");
        s.n_kv_heads = whole("llama.attention.head_count_kv").value_or(s.n_heads);
        s.context = whole("llama.context_length").value_or(2048);
        s.head_dim = whole("llama.attention.key_length").value_or(s.width / s.n_heads);
        s.rope_dims = whole("llama.rope.dimension_count").value_or(s.head_dim);
        s.rope_base = real("llama.rope.freq_base", 10000.0f);
        s.norm_epsilon = real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
        const auto scaling = text("llama.rope.scaling.type");
        if (scaling && *scaling != "none") bad(fmt::format("llama.rope.scaling.type '{}' is not supported", *scaling));
        if (file_.tensor("rope_freqs.weight") != nullptr) bad("scaled rotation (rope_freqs.weight) is not supported");
        if (whole("llama.expert_count").value_or(0) > 0) bad("mixtures of experts (llama.expert_count) are not supported");
        if (error_.empty() && (s.n_kv_heads == 0 || s.n_heads % s.n_kv_heads != 0 || s.rope_dims > s.head_dim ||
                               s.rope_dims % 2 != 0 || s.head_dim == 0)) {
            bad(fmt::format("{} heads, {} KV heads, head size {}, {} turning dimensions do not fit together",
                            s.n_heads, s.n_kv_heads, s.head_dim, s.rope_dims));
        }
        const tensor_info* e = file_.tensor("token_embd.weight");
        if (e == nullptr || e->dims.size() != 2 || e->dims[0] != s.width) {
            bad("tensor 'token_embd.weight' is missing or has the wrong shape");
        } else {
            s.n_vocab = static_cast<uint32_t>(e->dims[1]);
        }
        return s;
    }
    // columns x rows as the file says it; rows 0: a vector.
    std::vector<float> read(const std::string& name, uint64_t columns, uint64_t rows) {
        const tensor_info* t = file_.tensor(name);
        const bool fits = t != nullptr && t->dims[0] == columns &&
                          (rows == 0 ? t->dims.size() == 1 : t->dims.size() == 2 && t->dims[1] == rows);
        if (!fits) {
            bad(fmt::format("tensor '{}' is missing or is not {} x {}", name, columns, std::max<uint64_t>(rows, 1)));
            return {};
        }
        std::vector<float> out;
        try {
            out.resize(t->n_elements());
        } catch (const std::exception&) {  // bad_alloc, length_error
            bad(fmt::format("tensor '{}' needs {} bytes as floats, more than there is memory for", name,
                            t->n_elements() * sizeof(float)));
            return {};
        }
        dequantise(t->type, t->bytes.data(), out.size(), out.data());
        return out;
    }
    void read_weights(model& m) {
        const model_shape& s = m.shape;
        const uint64_t w = s.width, q = uint64_t{s.n_heads} * s.head_dim, kv = s.kv_width();
        m.embedding = read("token_embd.weight", w, s.n_vocab);
        m.output_norm = read("output_norm.weight", w, 0);
        if (file_.tensor("output.weight") != nullptr) m.output = read("output.weight", w, s.n_vocab);
        for (uint32_t i = 0; i < s.n_layers && error_.empty(); ++i) {
            const auto name = [i](const char* part) { return fmt::format("blk.{}.{}.weight", i, part); };
            layer_weights l;
            l.attention_norm = read(name("attn_norm"), w, 0);
            l.q = read(name("attn_q"), w, q);
            l.k = read(name("attn_k"), w, kv);
            l.v = read(name("attn_v"), w, kv);
            l.o = read(name("attn_output"), q, w);
            l.ffn_norm = read(name("ffn_norm"), w, 0);
            l.gate = read(name("ffn_gate"), w, s.hidden);
            l.up = read(name("ffn_up"), w, s.hidden);
            l.down = read(name("ffn_down"), s.hidden, w);
            if (file_.tensor(fmt::format("blk.{}.attn_q.bias", i)) != nullptr) bad("biases are not supported");
            m.layers.push_back(std::move(l));
        }
    }

    const gguf_file& file_;
    std::string error_;
};

}  // namespace

std::unique_ptr<model> load_model(const gguf_file& file, std::string* error) {
    loader l(file);
    auto m = l.run();
    if (!m) *error = l.error();
    return m;
}

}  // namespace engine

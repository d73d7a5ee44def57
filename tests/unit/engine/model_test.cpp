#include "model/model.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "model/forward.hpp"
#include "model/matmul.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"
#include "text/vocabulary.hpp"

using namespace engine;

namespace {

constexpr uint32_t kBlockTokens = 16;

std::vector<uint32_t> some_tokens(uint64_t seed, uint32_t n, uint32_t n_vocab) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> tokens(n);
    for (uint32_t& t : tokens) t = static_cast<uint32_t>(random() % n_vocab);
    return tokens;
}

// Logits after the last token, computed in chunks of `chunk`, in device blocks from `first_block` on.
std::vector<float> logits_of(const model& m, kv_pool& pool, const std::vector<uint32_t>& tokens, uint32_t chunk,
                             uint32_t first_block = 0) {
    forward_pass forward(m, pool);
    std::vector<uint32_t> table(tokens.size() / kBlockTokens + 1), next(1);
    std::iota(table.begin(), table.end(), first_block);
    std::vector<float> logits;
    for (uint32_t at = 0; at < tokens.size(); at += chunk) {
        const auto n = std::min<uint32_t>(chunk, static_cast<uint32_t>(tokens.size()) - at);
        const bool last = at + n == tokens.size();
        const work_item item{std::span(tokens).subspan(at, n), at, table, last};
        forward.run(std::span(&item, 1), next, last ? &logits : nullptr);
    }
    return logits;
}

// w (rows x x.size(), row-major) * x.
std::vector<double> times(const std::vector<float>& w, const std::vector<double>& x, size_t rows) {
    std::vector<double> y(rows, 0);
    for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < x.size(); ++c) y[r] += static_cast<double>(w[r * x.size() + c]) * x[c];
    }
    return y;
}

// The textbook forward pass in double precision, without tiles, blocks or vectors.
std::vector<double> naive_logits(const model& m, const std::vector<uint32_t>& tokens) {
    const model_shape& s = m.shape;
    using matrix = std::vector<std::vector<double>>;
    const auto norm = [&](const std::vector<double>& x, const std::vector<float>& w) {
        double sum = 0;
        for (double v : x) sum += v * v;
        const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + static_cast<double>(s.norm_epsilon));
        std::vector<double> y(x.size());
        for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * static_cast<double>(w[i]);
        return y;
    };
    const auto turn = [&](std::vector<double>& x, size_t position) {
        for (size_t h = 0; h < x.size(); h += s.head_dim) {
            for (size_t i = 0; i < s.rope_dims; i += 2) {
                const double angle = static_cast<double>(position) *
                                     std::pow(static_cast<double>(s.rope_base), -static_cast<double>(i) / s.rope_dims);
                const double a = x[h + i], b = x[h + i + 1];
                x[h + i] = a * std::cos(angle) - b * std::sin(angle);
                x[h + i + 1] = a * std::sin(angle) + b * std::cos(angle);
            }
        }
    };
    matrix x;
    for (uint32_t t : tokens) {
        x.emplace_back(m.embedding.begin() + static_cast<long>(t * s.width), m.embedding.begin() + static_cast<long>((t + 1) * s.width));
    }
    const size_t n = tokens.size(), q_width = size_t{s.n_heads} * s.head_dim;
    for (const layer_weights& w : m.layers) {
        matrix q(n), k(n), v(n);
        for (size_t t = 0; t < n; ++t) {
            const auto normed = norm(x[t], w.attention_norm);
            q[t] = times(w.q, normed, q_width);
            k[t] = times(w.k, normed, s.kv_width());
            v[t] = times(w.v, normed, s.kv_width());
            turn(q[t], t);
            turn(k[t], t);
        }
        for (size_t t = 0; t < n; ++t) {
            std::vector<double> mixed(q_width, 0);
            for (size_t h = 0; h < s.n_heads; ++h) {
                const size_t from = h / (s.n_heads / s.n_kv_heads) * s.head_dim, at = h * s.head_dim;
                std::vector<double> weight(t + 1);
                double sum = 0;
                for (size_t p = 0; p <= t; ++p) {
                    double score = 0;
                    for (size_t i = 0; i < s.head_dim; ++i) score += q[t][at + i] * k[p][from + i];
                    sum += weight[p] = std::exp(score / std::sqrt(static_cast<double>(s.head_dim)));
                }
                for (size_t p = 0; p <= t; ++p) {
                    for (size_t i = 0; i < s.head_dim; ++i) mixed[at + i] += weight[p] / sum * v[p][from + i];
                }
            }
            const auto o = times(w.o, mixed, s.width);
            for (size_t i = 0; i < s.width; ++i) x[t][i] += o[i];
            const auto normed = norm(x[t], w.ffn_norm);
            auto gate = times(w.gate, normed, s.hidden);
            const auto up = times(w.up, normed, s.hidden);
            for (size_t i = 0; i < s.hidden; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
            const auto down = times(w.down, gate, s.width);
            for (size_t i = 0; i < s.width; ++i) x[t][i] += down[i];
        }
    }
    return times(m.head(), norm(x.back(), m.output_norm), s.n_vocab);
}

std::string model_path() {
    const char* given = std::getenv("KVO_MODEL");
    if (given != nullptr) return given;
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const std::string base = cache != nullptr ? cache : std::string(home != nullptr ? home : "") + "/.cache";
    return base + "/kvoffload/SmolLM2-135M-Instruct.Q4_1.gguf";
}

}  // namespace

TEST_CASE("a column of a product is the same bits whatever tile it is in and whoever is beside it") {
    std::mt19937 random(static_cast<unsigned>(kvo::test::seed()));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (auto [rows, inner] : {std::pair(128u, 128u), std::pair(576u, 1536u), std::pair(200u, 576u)}) {
        std::vector<float> w(size_t{rows} * inner), column(inner);
        for (float& x : w) x = uniform(random);
        for (float& x : column) x = uniform(random);
        std::vector<float> first;
        for (uint32_t columns : {4u, 8u, 16u, 32u, 64u, 128u}) {
            for (uint32_t place = 0; place < columns; place += 3) {
                std::vector<float> in(size_t{inner} * columns), out(size_t{rows} * columns);
                for (float& x : in) x = uniform(random);
                std::copy(column.begin(), column.end(), in.begin() + static_cast<long>(place * inner));
                multiply(w, rows, inner, in.data(), columns, out.data());
                const std::vector<float> mine(out.begin() + static_cast<long>(place * rows), out.begin() + static_cast<long>((place + 1) * rows));
                if (first.empty()) first = mine;
                REQUIRE(mine == first);
            }
        }
    }
}

TEST_CASE("logits are bit-equal over chunk sizes, neighbours, block places and layouts") {
    const auto m = random_model(3, small_shape());
    const auto tokens = some_tokens(1, 150, m->shape.n_vocab);
    kv_pool pool(m->shape, 40, kBlockTokens, kv_layout::block_first);
    kv_pool layered(m->shape, 40, kBlockTokens, kv_layout::layer_first);
    const auto expected = logits_of(*m, pool, tokens, 150);
    for (uint32_t chunk : {1u, 7u, 16u, 64u, 100u, 128u}) CHECK(logits_of(*m, pool, tokens, chunk, 20) == expected);
    CHECK(logits_of(*m, layered, tokens, 33) == expected);

    // Beside two other sequences in one pass.
    const auto a = some_tokens(2, 37, m->shape.n_vocab), b = some_tokens(4, 5, m->shape.n_vocab);
    std::vector<uint32_t> t0(10), t1(10), t2(10), next(3);
    std::iota(t0.begin(), t0.end(), 0u);
    std::iota(t1.begin(), t1.end(), 10u);
    std::iota(t2.begin(), t2.end(), 20u);
    const work_item items[] = {{a, 0, t0, true}, {tokens, 0, t1, true}, {b, 0, t2, true}};
    std::vector<float> logits;
    forward_pass(*m, pool).run(items, next, &logits);
    const auto n = static_cast<long>(m->shape.n_vocab);
    // Items are answered tile by tile; the second one's row is found by its values.
    bool found = false;
    for (long row = 0; row < 3; ++row) found = found || std::equal(expected.begin(), expected.end(), logits.begin() + row * n);
    CHECK(found);
}

TEST_CASE("logits agree with the textbook in double precision") {
    for (uint64_t seed : {1ull, 2ull, 3ull}) {
        const auto m = random_model(seed, small_shape());
        const auto tokens = some_tokens(seed, 21, m->shape.n_vocab);
        kv_pool pool(m->shape, 4, kBlockTokens, kv_layout::block_first);
        const auto logits = logits_of(*m, pool, tokens, 8);
        const auto naive = naive_logits(*m, tokens);
        double worst = 0;
        for (size_t i = 0; i < naive.size(); ++i) worst = std::max(worst, std::abs(naive[i] - static_cast<double>(logits[i])));
        CHECK(worst < 1e-3);
    }
}

TEST_CASE("logits of the real model agree with llama.cpp within 1e-2") {
    if (!std::filesystem::exists(model_path())) KVO_SKIP("no model at " << model_path() << " (examples/fetch_model.sh)");
    std::string error;
    const auto file = gguf_file::open(model_path(), &error);
    REQUIRE(file);
    const auto m = load_model(*file, &error);
    REQUIRE(m);
    kv_pool pool(m->shape, 20, kBlockTokens, kv_layout::block_first);
    const auto reference = nlohmann::json::parse(std::ifstream(std::string(KVO_TEST_DATA_DIR) + "/smollm2_reference.json"));
    for (const auto& prompt : reference["prompts"]) {
        const auto logits = logits_of(*m, pool, prompt["tokens"].get<std::vector<uint32_t>>(), 64);
        // The reference has log probabilities: logits less one constant.
        const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
        double sum = 0;
        for (float l : logits) sum += std::exp(static_cast<double>(l) - most);
        const double constant = most + std::log(sum);
        double worst = 0;
        for (size_t i = 0; i < prompt["ids"].size(); ++i) {
            const double mine = static_cast<double>(logits[prompt["ids"][i].get<size_t>()]) - constant;
            worst = std::max(worst, std::abs(mine - prompt["log_probabilities"][i].get<double>()));
        }
        INFO("prompt of " << prompt["tokens"].size() << " tokens, worst difference " << worst);
        CHECK(worst < 1e-2);
    }
    const auto words = vocabulary::load(*file, &error);
    REQUIRE(words);
    const std::string text = "Hello world, it's 2026!\nThe harbour office  watches.";
    CHECK(words->decode(words->encode(text)) == text);
    CHECK(words->encode("<|im_start|>user\n").front() == 1);
}

// That the example engine is not slow on purpose: prefill of 512 tokens, as the demo does it, against
// the matrix library alone on the same products (Eigen, as many threads, each with its own share of
// the tokens), in turn. The model has the shape of SmolLM2-135M with random weights. `ratio` is the
// matrix library's median time by the engine's: the rest is attention, norms, tiles and threads.
#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "model/forward.hpp"
#include "model/thread_team.hpp"
#include "timing.hpp"

namespace {

using bench::clock_type;
using bench::median;
using bench::seconds_since;
constexpr uint32_t kTokens = 512, kChunk = 128, kBlockTokens = 16;

engine::model_shape smollm2_shape() {
    engine::model_shape s = engine::small_shape();
    s.n_layers = 30;
    s.width = 576;
    s.n_heads = 9;
    s.n_kv_heads = 3;
    s.head_dim = s.rope_dims = 64;
    s.hidden = 1536;
    return s;
}

double engine_prefill(const engine::model& m) {
    engine::kv_pool pool(m.shape, kTokens / kBlockTokens, kBlockTokens, engine::kv_layout::block_first);
    engine::forward_pass forward(m, pool);
    std::vector<uint32_t> tokens(kTokens), table(kTokens / kBlockTokens);
    std::iota(tokens.begin(), tokens.end(), 0u);
    std::iota(table.begin(), table.end(), 0u);
    uint32_t next = 0;
    const auto begin = clock_type::now();
    for (uint32_t first = 0; first < kTokens; first += kChunk) {
        engine::work_item item{};
        item.tokens = std::span(tokens).subspan(first, kChunk);
        item.first_position = first;
        item.table = table;
        forward.run({&item, 1}, {&next, 1});
    }
    benchmark::DoNotOptimize(next);
    return seconds_since(begin);
}

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// y (rows x columns) = w * x with whatever kernel and blocking Eigen likes best.
void product(const std::vector<float>& w, const Eigen::MatrixXf& x, Eigen::MatrixXf* y) {
    const auto inner = x.rows();
    const auto rows = static_cast<Eigen::Index>(w.size()) / inner;
    y->resize(rows, x.cols());
    y->noalias() = Eigen::Map<const row_major>(w.data(), rows, inner) * x;
    benchmark::DoNotOptimize(y->data());
}

double bare_products(const engine::model& m, uint32_t n_threads) {
    const auto columns = static_cast<Eigen::Index>(kTokens / n_threads);
    const Eigen::MatrixXf narrow = Eigen::MatrixXf::Random(m.shape.width, columns);
    const Eigen::MatrixXf wide = Eigen::MatrixXf::Random(m.shape.hidden, columns);
    const auto work = [&] {
        Eigen::MatrixXf y;
        for (const auto& l : m.layers) {
            for (const auto* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up}) product(*w, narrow, &y);
            product(l.down, wide, &y);
        }
    };
    const auto begin = clock_type::now();
    std::vector<std::thread> others;
    for (uint32_t i = 1; i < n_threads; ++i) others.emplace_back(work);
    work();
    for (auto& t : others) t.join();
    return seconds_since(begin);
}

void prefill(benchmark::State& state) {
    const auto m = engine::random_model(1, smollm2_shape());
    const uint32_t n_threads = engine::thread_team::shared().size();
    uint64_t weights = 0;
    for (const auto& l : m->layers) {
        for (const auto* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) weights += w->size();
    }
    std::vector<double> library, engine;
    for (auto _ : state) {
        library.push_back(bare_products(*m, n_threads));
        engine.push_back(engine_prefill(*m));
        state.SetIterationTime(engine.back());
    }
    const double gflop = 2e-9 * static_cast<double>(weights) * kTokens;
    state.counters["eigen_GFLOP_s"] = gflop / median(library);
    state.counters["engine_GFLOP_s"] = gflop / median(engine);
    state.counters["tokens_per_s"] = kTokens / median(engine);
    state.counters["threads"] = n_threads;
    state.counters["ratio"] = median(library) / median(engine);
}

}  // namespace

BENCHMARK(prefill)->UseManualTime()->Iterations(7)->Unit(benchmark::kMillisecond);

#include "serve/measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "serve/report.hpp"
#include "serve/run.hpp"

namespace engine {

namespace {

double ms(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::vector<uint32_t> prompt_of(uint64_t id, uint32_t n, uint64_t tail_id, uint32_t n_tail,
                                uint32_t n_vocab) {
    auto prompt = tokens_of_block(id, n, n_vocab);
    const auto tail = tokens_of_block(tail_id, n_tail, n_vocab);
    prompt.insert(prompt.end(), tail.begin(), tail.end());
    return prompt;
}

// Serves one request alone and returns its time to first token.
uint64_t serve_one(const measured_engine& e, block_pool& pool, reuse_tier& tier,
                   const request_spec& spec, scheduler_counts* counts) {
    scheduler s(e.config, pool, tier, e.forward);
    request r;
    r.spec = &spec;
    s.submit(&r);
    std::vector<request*> finished;
    while (s.step(&finished)) {
    }
    tier.settle();
    *counts = s.counts();
    return r.first_token_ns - r.arrived_ns;
}

// Bytes per nanosecond of a plain copy of one prefix's KV, block by block, best of three.
double copy_rate(uint64_t block_bytes, uint32_t n_blocks) {
    std::vector<uint8_t> from(block_bytes * n_blocks, 1), to(block_bytes * n_blocks, 2);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; ++i) {
        const uint64_t start = wall_ns();
        for (uint32_t b = 0; b < n_blocks; ++b) {
            std::memcpy(&to[b * block_bytes], &from[b * block_bytes], block_bytes);
        }
        best = std::min(best, wall_ns() - start);
    }
    return static_cast<double>(from.size()) / static_cast<double>(best);
}

struct ttft_samples {
    std::vector<double> cold, device, host, extra;  // ms; extra: host less the device run before it
    bool all_reused = true;
};

// One prefix: computed once, then asked for again and again with another tail, while the device pool
// still holds it and right after that when it has forgotten it.
ttft_samples ttft_of(const measured_engine& e, block_pool& pool, reuse_tier& tier, uint64_t id,
                     uint32_t prefix_tokens, uint32_t n_new, int pairs) {
    ttft_samples out;
    scheduler_counts counts;
    uint64_t tail = id;
    const auto ask = [&] {
        request_spec spec;
        spec.prompt = prompt_of(id, prefix_tokens, ++tail, n_new, e.n_vocab);
        return ms(serve_one(e, pool, tier, spec, &counts));
    };
    out.cold.push_back(ask());
    for (int i = 0; i < pairs; ++i) {
        out.device.push_back(ask());
        pool.forget();
        out.host.push_back(ask());
        out.extra.push_back(out.host.back() - out.device.back());
        out.all_reused = out.all_reused && counts.reused_host_tokens == prefix_tokens;
    }
    pool.forget();
    return out;
}

}  // namespace

std::string measure_ttft(const measured_engine& e, uint32_t prefix_tokens, int pairs, std::string* text) {
    block_pool pool(e.n_blocks, e.config.block_tokens, true);
    auto tier = e.make_tier();
    const uint32_t prefix_blocks = prefix_tokens / e.config.block_tokens;
    const double rate = copy_rate(e.block_bytes, prefix_blocks);
    const double copy_ms = static_cast<double>(prefix_blocks * e.block_bytes) / rate * 1e-6;
    nlohmann::json out = {{"prefix_tokens", prefix_tokens}, {"copy_gb_per_s", rate}, {"pairs", pairs}};
    *text = fmt::format("prefix {} tokens, {} blocks, plain copy {:.1f} GB/s = {:.2f} ms; medians of {} pairs\n",
                        prefix_tokens, prefix_blocks, rate, copy_ms, pairs);
    uint64_t id = uint64_t{1} << 50;
    for (uint32_t n_new : {1u, 16u}) {
        const auto s = ttft_of(e, pool, *tier, id += 1'000'000, prefix_tokens, n_new, pairs);
        const double limit = copy_ms + 2.0, extra = percentile(s.extra, 0.5);
        const double cold = percentile(s.cold, 0.5), warm = percentile(s.host, 0.5);
        const bool ok = s.all_reused && extra <= limit;
        out["cases"].push_back({{"new_tokens", n_new},
                                {"cold_ms", cold},
                                {"device_ms", percentile(s.device, 0.5)},
                                {"host_ms", warm},
                                {"extra_ms", extra},
                                {"extra_limit_ms", limit},
                                {"cold_over_host", cold / warm},
                                {"within_limit", ok}});
        *text += fmt::format(
            "+{:<2} new: cold {:.1f} ms, prefix on device {:.1f} ms, prefix on host {:.1f} ms: {:+.1f} ms in "
            "pairs (limit {:.1f}: {}), {:.0f}x faster than cold\n",
            n_new, cold, percentile(s.device, 0.5), warm, extra, limit, ok ? "met" : "NOT met", cold / warm);
    }
    return out.dump(2);
}

namespace {

// Order statistics that enclose the median of n paired differences with at least 95 % (binomial).
void median_interval(std::vector<double> d, double* low, double* high) {
    std::sort(d.begin(), d.end());
    const auto n = static_cast<double>(d.size());
    const double half = 1.96 * std::sqrt(n) / 2;
    const double last = n - 1;
    *low = d[static_cast<size_t>(std::clamp(std::floor(n / 2 - half), 0.0, last))];
    *high = d[static_cast<size_t>(std::clamp(std::ceil(n / 2 + half) - 1, 0.0, last))];
}

run_result no_reuse_run(const measured_engine& e, reuse_tier& tier, uint64_t id,
                        uint32_t prompt_tokens, uint32_t answer_tokens) {
    schedule plan{"no reuse", {{}}};
    request_spec spec;
    spec.prompt = tokens_of_block(id, prompt_tokens, e.n_vocab);
    spec.max_answer = answer_tokens;
    plan.users[0] = {spec};
    block_pool pool(e.n_blocks, e.config.block_tokens, false);
    run_result result;
    std::string error;
    if (!run_schedule("", plan, e.config, pool, tier, e.forward, &result, &error)) result.total_s = NAN;
    return result;
}

}  // namespace

std::string measure_overhead(const measured_engine& e, uint32_t prompt_tokens, uint32_t answer_tokens,
                             int pairs, std::string* text) {
    auto without = make_no_tier();
    auto with = e.make_tier();
    std::vector<double> ratio;
    double library_ns = 0, cpu_s = 0;
    uint64_t id = uint64_t{1} << 51;
    for (int i = 0; i < pairs; ++i, ++id) {
        // The order within a pair alternates, so that drift of the machine cancels out.
        run_result off, on;
        for (int k = 0; k < 2; ++k) {
            const bool is_on = (k == 0) == (i % 2 == 0);
            (is_on ? on : off) =
                no_reuse_run(e, is_on ? *with : *without, id, prompt_tokens, answer_tokens);
        }
        ratio.push_back(on.total_s / off.total_s - 1);
        library_ns += static_cast<double>(on.tier.cpu_ns_calls + on.tier.cpu_ns_threads);
        cpu_s += on.cpu_s;
    }
    double low = 0, high = 0;
    median_interval(ratio, &low, &high);
    const double library_share = library_ns * 1e-9 / cpu_s;
    const nlohmann::json out = {{"prompt_tokens", prompt_tokens},
                                {"answer_tokens", answer_tokens},
                                {"pairs", pairs},
                                {"library_cpu_share", library_share},
                                {"within_limit", library_share < 0.01},
                                {"slowdown_median", percentile(ratio, 0.5)},
                                {"slowdown_low95", low},
                                {"slowdown_high95", high}};
    *text = fmt::format(
        "{} pairs of {} prompt + {} answer tokens, nothing reused: library CPU {:.2f} % of all CPU "
        "(limit 1 %: {}); total time {:+.2f} % (median of pairs, 95 % interval {:+.2f} .. {:+.2f} %)\n",
        pairs, prompt_tokens, answer_tokens, library_share * 100, library_share < 0.01 ? "met" : "NOT met",
        percentile(ratio, 0.5) * 100, low * 100, high * 100);
    return out.dump(2);
}

}  // namespace engine

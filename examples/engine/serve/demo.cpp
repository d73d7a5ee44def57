#include "serve/demo.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "model/forward.hpp"
#include "serve/measure.hpp"
#include "serve/report.hpp"

namespace engine {

namespace {

constexpr uint32_t kBlockTokens = 16;

scheduler_config scheduler_for(const demo_engine& e, const demo_options& o) {
    scheduler_config c;
    c.block_tokens = kBlockTokens;
    c.max_running = o.max_running;
    c.max_step_tokens = 128;
    c.end_token = e.words ? e.words->end_token() : UINT32_MAX;
    return c;
}

kv_layout layout_of(const demo_options& o) {
    return o.layer_first ? kv_layout::layer_first : kv_layout::block_first;
}

offload_config offload_for(const demo_engine& e, const demo_options& o) {
    return {o.host_mib << 20, o.arc, e.fingerprint + (o.layer_first ? "/layer first" : "/block first")};
}

void show_progress(const std::string& schedule_name, const std::string& run_name) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K{}: {} ...", schedule_name, run_name);
}
void end_progress() {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
}

// The four runs of one schedule. The last one has the same tier after a reset, as after a restart.
bool run_all(const demo_engine& e, const demo_options& o, const schedule& plan, std::vector<run_result>* runs,
             std::string* error) {
    kv_pool memory(e.weights->shape, o.device_blocks, kBlockTokens, layout_of(o));
    forward_pass forward(*e.weights, memory);
    const auto config = scheduler_for(e, o);
    auto none = make_no_tier();
    std::unique_ptr<offload_tier> offload;
    const auto run = [&](const char* name, bool reuses_device, reuse_tier& tier, uint64_t rss_before) {
        show_progress(plan.name, name);
        block_pool pool(o.device_blocks, kBlockTokens, reuses_device);
        runs->emplace_back();
        run_result& r = runs->back();
        const bool ok = run_schedule(name, plan, config, pool, tier, forward.function(), &r, error);
        r.rss_before = rss_before;
        end_progress();
        return ok;
    };
    if (!run("no reuse", false, *none, resident_bytes())) return false;
    if (!run("device cache", true, *none, resident_bytes())) return false;
    const uint64_t before_offload = resident_bytes();
    offload = make_offload_tier(memory, offload_for(e, o), error);
    if (!offload) return false;
    if (o.spoil) offload->spoil_loads();
    if (!run("device + offload", true, *offload, before_offload)) return false;
    offload->reset();
    return run("after reset", true, *offload, before_offload);
}

void show_answers(const demo_engine& e, const schedule& plan, const run_result& run) {
    size_t number = 0, shown = 0;
    for (const auto& user : plan.users) {
        for (const auto& request : user) {
            const auto& answer = run.answers[number++];
            if (request.question.empty() || !e.words || shown == 6) continue;
            if (shown++ == 0) fmt::print("\nSome answers (the same in every run):\n");
            fmt::print("  Q: {}\n  A: {}\n", request.question, e.words->decode(answer));
        }
    }
}

measured_engine measured(const demo_engine& e, const demo_options& o, kv_pool& memory, forward_pass& forward,
                         std::string* error) {
    measured_engine m;
    m.forward = forward.function();
    m.n_vocab = e.weights->shape.n_vocab;
    m.n_blocks = memory.n_blocks();
    m.block_bytes = memory.block_bytes();
    m.config = scheduler_for(e, o);
    m.make_tier = [&memory, &e, o, error]() -> std::unique_ptr<reuse_tier> {
        return make_offload_tier(memory, offload_for(e, o), error);
    };
    return m;
}

}  // namespace

bool demo_replay(const demo_engine& e, const demo_options& o, nlohmann::json* out) {
    bool all_equal = true;
    std::istringstream names(o.schedules);
    for (std::string name; std::getline(names, name, ',');) {
        schedule plan;
        std::string error;
        const std::string path = o.data + "/" + name + ".json";
        std::vector<run_result> runs;
        if (!read_schedule(path, e.weights->shape.n_vocab, kBlockTokens, &plan, &error) ||
            !run_all(e, o, plan, &runs, &error)) {
            fmt::print(stderr, "{}\n", error);
            return false;
        }
        fmt::print("{}", table_text(fmt::format("{} ({} requests)", name, plan.n_requests()), runs));
        const std::string difference = first_difference(runs);
        fmt::print("answers: {}\n", difference.empty() ? "equal in all runs, token for token" : difference);
        if (difference.empty()) show_answers(e, plan, runs[2]);
        all_equal = all_equal && difference.empty();
        (*out)["schedules"].push_back(nlohmann::json::parse(json_text(e.weights->name, name, runs)));
    }
    return all_equal;
}

bool demo_ttft(const demo_engine& e, const demo_options& o, nlohmann::json* out) {
    const uint32_t n_blocks = o.ttft_prefix / kBlockTokens * 2 + 8;
    kv_pool memory(e.weights->shape, n_blocks, kBlockTokens, layout_of(o));
    forward_pass forward(*e.weights, memory);
    std::string error, text;
    const auto m = measured(e, o, memory, forward, &error);
    if (!m.make_tier()) return fmt::print(stderr, "{}\n", error), false;
    const auto result = nlohmann::json::parse(measure_ttft(m, o.ttft_prefix, o.ttft_pairs, &text));
    fmt::print("\nTime to first token, {}\n{}", e.weights->name, text);
    (*out)["ttft"] = result;
    bool ok = true;
    for (const auto& c : result["cases"]) ok = ok && c["within_limit"].get<bool>();
    return ok;
}

bool demo_overhead(const demo_engine& e, const demo_options& o, nlohmann::json* out) {
    kv_pool memory(e.weights->shape, o.device_blocks, kBlockTokens, layout_of(o));
    forward_pass forward(*e.weights, memory);
    std::string error, text;
    const auto m = measured(e, o, memory, forward, &error);
    if (!m.make_tier()) return fmt::print(stderr, "{}\n", error), false;
    const auto result = nlohmann::json::parse(measure_overhead(m, 128, 4, o.overhead_pairs, &text));
    fmt::print("\nCost without reuse, {}\n{}", e.weights->name, text);
    (*out)["overhead"] = result;
    return result["within_limit"].get<bool>();
}

}  // namespace engine

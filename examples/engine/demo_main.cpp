// kvo-demo: a small paged inference server that links kvoffload, run on fixed schedules with and without it.
// Exit code 0: all as promised; 1: answers differ or a limit is missed; 2: bad input.
#include <fmt/core.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/demo.hpp"

namespace {

// PATH of a GGUF file, or random:SEED.
// Every byte of the file: two models of one name, or one model quantised twice, never share a block.
std::string digest_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> part(1 << 20);
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0)
        XXH3_128bits_update(&state, part.data(), static_cast<size_t>(file.gcount()));
    const XXH128_hash_t h = XXH3_128bits_digest(&state);
    return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

bool make_engine(const std::string& spec, engine::demo_engine* out, std::string* error) {
    constexpr const char* kRandom = "random:";
    if (spec.rfind(kRandom, 0) == 0) {
        char* end = nullptr;
        const uint64_t seed = std::strtoull(spec.c_str() + std::strlen(kRandom), &end, 10);
        if (end == nullptr || *end != '\0' || spec.size() == std::strlen(kRandom)) {
            *error = fmt::format("--model {}: random: wants a whole number behind it", spec);
            return false;
        }
        out->weights = engine::random_model(seed, engine::small_shape());
        out->fingerprint = spec;
        return true;
    }
    const auto file = engine::gguf_file::open(spec, error);
    if (!file) return false;
    out->weights = engine::load_model(*file, error);
    if (!out->weights) return false;
    std::string no_words;
    out->words = engine::vocabulary::load(*file, &no_words);  // answers are then shown as numbers only
    out->fingerprint = digest_of(spec);
    return true;
}

// Schedule texts: {"texts": ["..."]} -> token numbers, for making pre-tokenised data.
int tokenise(const engine::demo_engine& e, const std::string& path) {
    if (!e.words) return fmt::print(stderr, "this model has no vocabulary\n"), 2;
    try {
        auto doc = nlohmann::json::parse(std::ifstream(path));
        for (auto& text : doc["texts"]) text = e.words->encode(text.get<std::string>());
        fmt::print("{}\n", doc.dump());
    } catch (const std::exception& ex) {
        return fmt::print(stderr, "{}: {}\n", path, ex.what()), 2;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Serves fixed request schedules with and without kvoffload and compares every answer."};
    engine::demo_options o;
    std::string model_spec = "random:1", json_path, job = "replay", text_path;
    app.add_option("job", job, "replay (default), ttft, overhead, or tokenise")
        ->check(CLI::IsMember({"replay", "ttft", "overhead", "tokenise"}));
    app.add_option("--model", model_spec, "GGUF file of a Llama-family model, or random:SEED");
    app.add_option("--data", o.data, "folder with the schedules");
    app.add_option("--schedules", o.schedules, "which ones, separated by commas");
    app.add_option("--device-blocks", o.device_blocks, "blocks of 16 tokens in the device pool")->check(CLI::Range(8, 1 << 20));
    app.add_option("--host-mib", o.host_mib, "budget of the offload in MiB")->check(CLI::Range(1, 1 << 20));
    app.add_option("--running", o.max_running, "requests served at once")->check(CLI::Range(1, 64));
    app.add_flag("--layer-first", o.layer_first, "KV pool with one array per layer instead of one range per block");
    app.add_flag("--arc", o.arc, "ARC instead of LRU");
    app.add_flag("--spoil", o.spoil, "zero one block of each load: the comparison must then fail");
    app.add_option("--prefix", o.ttft_prefix, "ttft: tokens of the prefix")->check(CLI::Range(16, 1 << 16));
    app.add_option("--repetitions", o.ttft_pairs, "ttft: pairs of runs, prefix on the device and on the host")->check(CLI::Range(1, 1000));
    app.add_option("--pairs", o.overhead_pairs, "overhead: pairs of runs")->check(CLI::Range(1, 10000));
    app.add_option("--json", json_path, "write the results here as JSON");
    app.add_option("--texts", text_path, "tokenise: JSON file with \"texts\"");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }

    engine::demo_engine e;
    std::string error;
    if (!make_engine(model_spec, &e, &error)) {
        fmt::print(stderr, "{}\n", error);
        return 2;
    }
    if (job == "tokenise") return tokenise(e, text_path);
    fmt::print("model: {}\n", e.weights->name);
    nlohmann::json results = {{"model", e.weights->name}};
    const auto run = job == "ttft" ? engine::demo_ttft : job == "overhead" ? engine::demo_overhead : engine::demo_replay;
    const bool ok = run(e, o, &results);
    results["ok"] = ok;
    if (!json_path.empty()) {
        std::ofstream(json_path) << results.dump(2) << "\n";
        fmt::print("\nresults: {}\n", json_path);
    }
    return ok ? 0 : 1;
}

// The jobs of kvo-demo: replay schedules with and without reuse, and the two measurements. Each prints for
// people, adds to one JSON document, and returns false when something is not as promised.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/model.hpp"
#include "serve/offload.hpp"
#include "serve/run.hpp"
#include "text/vocabulary.hpp"

namespace engine {

struct demo_options {
    std::string data = "examples/data";
    std::string schedules = "assistant,miniswe,conversation";
    uint32_t device_blocks = 40;
    uint64_t host_mib = 512;
    bool layer_first = false;
    bool arc = false;
    bool spoil = false;       // zero one block of each load: the comparison must then fail
    uint32_t max_running = 4;
    uint32_t ttft_prefix = 1024;
    int ttft_pairs = 20;
    int overhead_pairs = 30;
};

struct demo_engine {
    std::unique_ptr<model> weights;
    std::unique_ptr<vocabulary> words;  // null for random weights
    std::string fingerprint;
};

bool demo_replay(const demo_engine& e, const demo_options& o, nlohmann::json* out);
bool demo_ttft(const demo_engine& e, const demo_options& o, nlohmann::json* out);
bool demo_overhead(const demo_engine& e, const demo_options& o, nlohmann::json* out);

}  // namespace engine

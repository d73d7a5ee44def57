// Two measurements on the running engine: how fast a prefix comes back from the host (TTFT), and what the
// library costs when nothing is ever reused. Both compare within one run, in pairs. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "serve/block_pool.hpp"
#include "serve/reuse.hpp"
#include "serve/scheduler.hpp"

namespace engine {

// What the measurements need to know of the engine they measure.
struct measured_engine {
    forward_fn forward;
    uint32_t n_vocab = 0;
    uint32_t n_blocks = 0;      // device pool
    uint64_t block_bytes = 0;
    scheduler_config config;
    std::function<std::unique_ptr<reuse_tier>()> make_tier;  // kvoffload over the same device pool
};

// For prompts of `prefix` tokens plus 1 and plus 16: cold, then in pairs with the prefix on the device and
// with the prefix only on the host. What the latter takes longer is held against KV bytes / copy rate + 2 ms.
// Returns JSON; *text gets the same for people.
std::string measure_ttft(const measured_engine& e, uint32_t prefix_tokens, int pairs, std::string* text);

// Prompts that share nothing, with the library and without, alternating. Reports the library's share of
// CPU time (calls and threads) and the paired difference of the total time with its 95 % interval.
std::string measure_overhead(const measured_engine& e, uint32_t prompt_tokens, uint32_t answer_tokens,
                             int pairs, std::string* text);

}  // namespace engine

// Runs one schedule once, with one way of reusing KV, and measures it. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/reuse.hpp"
#include "serve/schedule.hpp"
#include "serve/scheduler.hpp"

namespace engine {

struct run_result {
    std::string name;
    std::vector<std::vector<uint32_t>> answers;  // by place in the schedule
    std::vector<double> ttft_ms;                 // by place in the schedule
    scheduler_counts counts;
    reuse_report tier;
    double total_s = 0;
    double cpu_s = 0;            // CPU time of the process during the run
    uint64_t prompt_tokens = 0;
    uint64_t rss_before = 0, rss_peak = 0, rss_after = 0;  // bytes
};

// Greedy decoding over `forward`; every user sends the next request when the last is answered. Returns
// false with *error when a request can never fit.
bool run_schedule(const std::string& name, const schedule& plan, const scheduler_config& config,
                  block_pool& pool, reuse_tier& tier, const forward_fn& forward, run_result* out,
                  std::string* error);

// Resident bytes of this process.
uint64_t resident_bytes();

}  // namespace engine

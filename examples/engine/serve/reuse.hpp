// The engine's seam to whatever keeps KV blocks beyond the device pool. Two fillings: nothing (reuse.cpp)
// and kvoffload (offload.cpp). Called by the scheduler only, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace engine {

// One sequence as the tier knows it; owned by the request.
class reuse_sequence {
public:
    virtual ~reuse_sequence() = default;
    // How many leading tokens of `tokens` can be had without computing, n_local included.
    virtual uint32_t lookup(std::span<const uint32_t> tokens, uint32_t n_local) = 0;
    // Starts loading the blocks of tokens [n_local, n_tokens) of the last lookup. false: it can't; compute.
    virtual bool load(std::span<const uint32_t> block_table, uint32_t n_tokens) = 0;
    // Leading tokens that are right once the load is over; UINT32_MAX while it runs.
    virtual uint32_t loaded() = 0;
    // KV of the first n_computed tokens is written.
    virtual void prefilled(uint32_t n_computed, std::span<const uint32_t> block_table) = 0;
    virtual void decoded(uint32_t new_token, uint32_t n_computed,
                         std::span<const uint32_t> block_table) = 0;
    virtual void preempt() = 0;
};

struct reuse_report {
    uint64_t load_bytes = 0, store_bytes = 0;
    uint64_t load_ns = 0, store_ns = 0;
    uint64_t stored_blocks = 0, evicted_blocks = 0, evicted_before_reuse = 0;
    uint64_t budget_bytes = 0, resident_bytes = 0;
    uint64_t cpu_ns_threads = 0;  // CPU time of the tier's own threads
    uint64_t cpu_ns_calls = 0;    // CPU time of this thread inside the tier's calls
    // What happened since `earlier`; sizes stay as they are now.
    void subtract_counters(const reuse_report& earlier);
};

class reuse_tier {
public:
    virtual ~reuse_tier() = default;
    virtual std::unique_ptr<reuse_sequence> begin() = 0;
    // These device blocks are handed out again: returns when they may be overwritten.
    virtual void fence(std::span<const uint32_t> blocks) = 0;
    // Drives transfers and hears of finished ones. idle: nothing else to do, may wait a little.
    virtual void progress(bool idle) = 0;
    // Waits until nothing is in flight, so that reports compare like with like.
    virtual void settle() = 0;
    virtual reuse_report report() = 0;
    // Zeroes one device block after each load from now on: only to show that the comparison can fail.
    virtual void spoil_loads() = 0;
};

std::unique_ptr<reuse_tier> make_no_tier();

}  // namespace engine

// Continuous batching over a fixed device pool: admits requests, reuses prefixes from the device pool and
// the reuse tier, prefills in chunks, decodes one token a step for every running request, preempts the
// youngest when the pool is full. Greedy. Owns neither model nor pool memory. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "model/work_item.hpp"
#include "serve/block_pool.hpp"
#include "serve/reuse.hpp"
#include "serve/schedule.hpp"

namespace engine {

// One request on its way through the engine.
struct request {
    const request_spec* spec = nullptr;
    size_t number = 0;              // place in the schedule, for comparing answers
    std::vector<uint32_t> tokens;   // prompt, then answer
    uint32_t n_answered() const {
        return static_cast<uint32_t>(tokens.size() - spec->prompt.size());
    }

    enum class phase : uint8_t { waiting, loading, prefill, decode, done } at = phase::waiting;
    std::vector<uint32_t> table;    // device blocks, in token order
    uint32_t n_computed = 0;        // leading tokens whose KV is in the table
    uint32_t n_local = 0;           // of those, found in the device pool at admission
    uint32_t n_published = 0;       // leading blocks that the device prefix cache knows
    uint64_t chain = 0;             // name of that prefix
    std::unique_ptr<reuse_sequence> sequence;

    uint64_t arrived_ns = 0, first_token_ns = 0, finished_ns = 0;
};

struct scheduler_config {
    uint32_t block_tokens = 16;
    uint32_t max_running = 8;
    uint32_t max_step_tokens = 256;  // prefill and decode tokens of one pass
    uint32_t end_token = UINT32_MAX;
};

struct scheduler_counts {
    uint64_t prefilled_tokens = 0, decoded_tokens = 0;
    uint64_t reused_device_tokens = 0, reused_host_tokens = 0;
    uint64_t preemptions = 0, steps = 0;
};

class scheduler {
public:
    scheduler(const scheduler_config& config, block_pool& pool, reuse_tier& tier, forward_fn forward);

    // The request must stay until it is done. false: it can never fit the device pool.
    bool submit(request* r);
    // One step; requests that finished in it are appended to *finished. false: nothing to do.
    bool step(std::vector<request*>* finished);
    const scheduler_counts& counts() const { return counts_; }

private:
    void admit();
    bool admit_one(request& r);
    void finish_loads();
    void preempt(request& r);
    bool room_for_next_token(request& r);
    void plan(std::vector<request*>* chosen, std::vector<work_item>* items);
    void advance(request& r, const work_item& item, uint32_t next);
    void publish(request& r);

    scheduler_config config_;
    block_pool& pool_;
    reuse_tier& tier_;
    forward_fn forward_;
    std::deque<request*> waiting_;
    std::vector<request*> running_;  // oldest first
    scheduler_counts counts_;
};

uint64_t wall_ns();

}  // namespace engine

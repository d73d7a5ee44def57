// The hooks: sequences of tokens over a cache. Turns tokens into keys and blocks, checks them
// exactly, orders stores behind the loads they depend on. Same types and meaning as the C header,
// one to one. Hooks of one sequence: one thread at a time; different sequences: any threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "cache/cache.hpp"
#include "kvoffload/kvo_seq.h"

namespace kvo {

// For tests of what happens when keys collide: may change the key of each block as it is made.
struct block_identity;
struct key_filter {
    void (*change)(void* context, const block_identity& of, kvo_key_t* key) = nullptr;
    void* context = nullptr;
};

class sequences {
public:
    // Memory inside the cache's budget: per block (tokens kept) and fixed (records, token room,
    // extras).
    static uint64_t bytes_per_block(const kvo_config_t& config);
    static uint64_t bytes_fixed(const kvo_config_t& config);
    // Before cache.start: hooks itself in as identity keeper and op observer, so it must outlive
    // the cache.
    static status create(cache& c, std::unique_ptr<sequences>* out, const key_filter& weaken = {});
    // After cache.start (needs max_entries): gets its memory.
    status start();
    ~sequences();

    status begin(kvo_ns_t ns, const kvo_seq_options_t& options, kvo_seq_t* out);
    status extras(kvo_seq_t seq, uint32_t token_begin, uint32_t token_count, const void* bytes,
                  uint64_t n);
    status lookup(kvo_seq_t seq, std::span<const uint32_t> tokens, uint32_t n_local,
                  uint32_t* n_tokens, kvo_lookup_state_t* state);
    status prefill(kvo_seq_t seq, std::span<const kvo_blocks_t> blocks, uint32_t n_tokens,
                   void* stream, const kvo_load_options_t& options, kvo_op_t* op);
    status prefilled(kvo_seq_t seq, uint32_t n_computed, std::span<const kvo_blocks_t> blocks,
                     void* stream);
    status decode(kvo_seq_t seq, std::span<const uint32_t> new_tokens, uint32_t n_computed,
                  std::span<const kvo_blocks_t> blocks, void* stream, shared_gate* gate = nullptr);
    // check: of each item, before anything is done for it.
    using item_check = status (*)(const kvo_decode_item_t& item);
    status decode_batch(std::span<kvo_decode_item_t> items, void* stream, item_check check = nullptr);
    status rewind(kvo_seq_t seq, uint32_t n_tokens, void* stream);
    status fork(kvo_seq_t seq, uint32_t n_tokens, kvo_seq_t* out);
    status preempt(kvo_seq_t seq);
    status end(kvo_seq_t seq);
    status info(kvo_seq_t seq, kvo_seq_info_t* out);
    status key(kvo_seq_t seq, uint32_t index, kvo_key_t* out);
    uint32_t n_open() const;

    // What is in use of the pools behind the hooks, beside open sequences. Once all are ended and
    // all ops over, only contexts of blocks that are still in the cache remain.
    struct room_t {
        uint32_t token_pages_used, token_pages;
        uint32_t watches_used, watches;
        uint64_t extra_bytes_used, extra_bytes;
    };
    room_t room() const;

    struct state;  // known to the files of this folder only

private:
    explicit sequences(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

}  // namespace kvo

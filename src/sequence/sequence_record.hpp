// What is known of one open sequence, and the fixed table of all of them behind public handles. A
// record is written by the hooks of its sequence only: one thread at a time, and `inside` turns
// away a second one. The table: any threads, a lock of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/ids.hpp"
#include "cache/handles.hpp"
#include "kvoffload/kvo_seq.h"
#include "sequence/context_store.hpp"
#include "sequence/op_watches.hpp"
#include "sequence/region.hpp"
#include "sequence/token_pages.hpp"

namespace kvo {

constexpr uint32_t kNever = UINT32_MAX;  // a token index that is never reached

// A load or a detached store of the sequence that may still be running.
struct op_use {
    uint32_t watch = kNoWatch;
    uint32_t first_block = 0;
    uint32_t n_blocks = 0;
    uint32_t limit_block = 0;  // blocks from here on are the sequence's no more (it went back)
    kvo_op_t op{};
};

constexpr uint32_t kMostLoads = 8;  // running at once: as many as a store may depend on

// A few of them, unordered.
class op_uses {
public:
    static constexpr uint32_t kMost = 32;
    uint32_t size() const { return n_; }
    bool full() const { return n_ == kMost; }
    op_use& operator[](uint32_t i) { return uses_[i]; }
    const op_use& operator[](uint32_t i) const { return uses_[i]; }
    void add(const op_use& use) { uses_[n_++] = use; }
    void remove(uint32_t i) { uses_[i] = uses_[--n_]; }

private:
    std::array<op_use, kMost> uses_{};
    uint32_t n_ = 0;
};

// What the last lookup found and pinned.
struct prompt_hit {
    kvo_ticket_t ticket{};
    uint32_t local_blocks = 0;  // the run of the ticket begins here
    uint32_t n_ready = 0;       // as last answered
    uint32_t n_local = 0;       // tokens
    uint32_t n_prompt = 0;
    uint64_t pending_until_ns = 0;  // of this question
};

// The entry that a block of the sequence is known to be in, as long as its serial is the same.
struct known_entry {
    uint32_t n_blocks = 0;  // up to and with this one; 0: none is known
    entry_id entry = kNoEntry;
    uint64_t serial = 0;
};

struct sequence_facts {
    kvo_ns_t ns{};
    uint32_t flags = 0;
    uint32_t max_store_tokens = kNever;
    uint64_t pending_deadline_ns = 0;
    kvo_key_t root{};
    context_id context = kNoContext;  // salt and all extras so far
    uint32_t unknown_from = kNever;   // content without identity from this token on
    token_history history;
    bool blind = false;  // the engine has gone on with tokens for which there was no room
    uint32_t n_prompt = 0;

    // ---- of this life of the device copy: from the first lookup to preempt or end ----
    uint64_t generation = 0;  // of the cache when it began
    uint32_t n_computed = 0;
    uint32_t n_offered =
        0;  // leading blocks that the store has been asked to take, or that were loaded
    uint32_t loaded_end = 0;  // blocks before this one may have come from the host
    known_entry chain_end;    // of the last store
    uint32_t restart_at = 0;  // a broken chain is offered anew when it has so many blocks
    uint32_t refused_at = 0;  // number of blocks to offer when the cache was full last
    uint32_t poisoned_from = kNever;
    prompt_hit hit;
    op_uses loads, stores;

    uint32_t n_stored_blocks = 0;
    uint32_t n_loaded_tokens = 0;
};

struct sequence_record : sequence_facts {
    std::atomic<uint64_t> handle{0};  // 0: free
    std::atomic<bool> inside{false};
    uint32_t generation_of_handle = 0;
    uint32_t next_free = 0;
};

class sequence_table {
public:
    static uint64_t bytes_for(uint32_t n) { return region::bytes_for<sequence_record>(n); }
    void place(region& memory, uint32_t n);

    // A fresh record with a handle; null when all are in use.
    sequence_record* take(kvo_seq_t* handle);
    void give(sequence_record* r);
    // Null for anything but a handle of an open sequence of this table.
    sequence_record* find(kvo_seq_t handle);
    uint32_t n_used() const;
    uint32_t size() const { return n_; }

private:
    mutable std::mutex mutex_;
    sequence_record* records_ = nullptr;
    uint32_t n_ = 0, n_used_ = 0, first_free_ = 0;
    uint32_t tag_ = 0;
};

}  // namespace kvo

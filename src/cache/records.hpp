// What tickets, reservations and ops mean to the cache, and notes on each op that is not over.
// Plain data in fixed pools; everything under the cache lock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "cache/handles.hpp"
#include "cache/runs.hpp"
#include "kvoffload/kvo_block.h"
#include "kvoffload/kvo_cache.h"

namespace kvo {

struct ticket_record {
    id_run entries;        // pinned, in chain order
    uint32_t n_ready = 0;  // the leading ones whose bytes are here
    ns_id ns{};
    uint64_t deadline_ns = 0;  // pending ones are let go then
    bool viewed = false;       // addresses were handed out: not revoked by purge or reset
};

constexpr uint32_t kMaxAfter = 8;

struct reservation_record {
    id_run entries;  // pairs: index in the caller's keys, entry
    ns_id ns{};
    uint64_t user_data = 0, deadline_ns = 0;
    bool detached = false;
    uint32_t n_after = 0;
    std::array<kvo_op_t, kMaxAfter> after{};
};

// The transfer engine hands its place back as the op's tag.
struct op_note {
    uint64_t owner_tag = 0;
    uint64_t generation = 0;  // of the cache at submit
    uint32_t groups = 0;      // bit per group
    uint32_t next_free = 0;
    bool detached = false;
    bool reverting = false;  // a commit that came to nothing: its blocks stay reserved
};

class op_notes {
public:
    static uint64_t bytes_for(uint32_t n) { return uint64_t{n} * sizeof(op_note); }
    void reset(uint32_t n) {
        notes_.assign(n, op_note{});
        for (uint32_t i = 0; i < n; ++i) notes_[i].next_free = i + 1;
        first_free_ = 0;
    }
    bool take(uint64_t* tag) {
        if (first_free_ >= notes_.size()) return false;
        *tag = first_free_;
        first_free_ = notes_[first_free_].next_free;
        notes_[*tag] = op_note{};
        return true;
    }
    op_note& operator[](uint64_t tag) { return notes_[tag]; }
    void give(uint64_t tag) {
        notes_[tag].next_free = first_free_;
        first_free_ = static_cast<uint32_t>(tag);
    }

private:
    std::vector<op_note> notes_;
    uint32_t first_free_ = 0;
};

uint64_t records_bytes(const kvo_config_t& config);

}  // namespace kvo

// The records of the transfer engine: ops, their host blocks and their pieces, in arrays sized once and
// linked by 32-bit numbers. Internal to src/transfer; everything here is used under the cache lock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transfer/transfer_engine.hpp"

namespace kvo {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMaxAfter = 8;  // loads one store may depend on

// Numbers 0..n-1 handed out and taken back; the order of reuse is last in, first out.
class number_pool {
public:
    explicit number_pool(uint32_t n) {
        free_.reserve(n);
        for (uint32_t i = n; i-- > 0;) free_.push_back(i);
    }
    uint32_t take() {
        if (free_.empty()) return kNone;
        const uint32_t i = free_.back();
        free_.pop_back();
        return i;
    }
    void give(uint32_t i) { free_.push_back(i); }
    uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }

private:
    std::vector<uint32_t> free_;
};

// waiting: may be withdrawn. issuing: its device calls are being made right now, without the lock. queued:
// on a stream. over: copied, failed or withdrawn.
enum class piece_state : uint8_t { waiting, issuing, queued, over };

// One device block of one group: what has to move between it and its place in a slot.
struct piece_record {
    uint32_t block = kNone;         // its block record
    uint32_t next_in_op = kNone;
    uint32_t next_in_slice = kNone;
    uint32_t device_block = 0;
    uint32_t fence_prev = kNone, fence_next = kNone;  // others that touch the same device block
    slot_id slot = kNoSlot;
    uint16_t group = 0;
    uint16_t sub = 0;               // which device block of the host block
    piece_state state = piece_state::over;
    uint8_t lane = 0;               // where it was queued
    uint32_t first_call_piece = 0, last_call_piece = 0;  // its descriptors in the slice
    uint64_t slice_serial = 0;
    status result = KVO_OK;
};

struct block_record {
    op_block block;
    uint32_t op = kNone;
    uint32_t next = kNone;
    uint32_t pieces_left = 0;
    bool delivered = false;
};

// An event recorded on a caller's stream, behind which one op or all ops of one batch wait.
struct gate_record {
    void* event = nullptr;
    uint32_t users = 0;
};

enum class op_place : uint8_t { none, gated, ready };

struct op_record {
    uint64_t id = 0;  // serial and number; 0: not in use
    op_phase phase = op_phase::open;
    op_place place = op_place::none;
    bool detached = false;
    bool external_done = false;
    uint32_t gate = kNone;     // waits for that event on the caller's stream
    void* event = nullptr;     // the completion of its slice on a side stream
    uint64_t tag = 0;
    uint64_t deadline_at_ns = 0, submitted_at_ns = 0;
    uint32_t first_block = kNone, last_block = kNone, n_blocks = 0, blocks_left = 0;
    uint32_t first_piece = kNone, last_piece = kNone;
    uint32_t next_piece = kNone;   // first that may still be waiting
    uint32_t n_unqueued = 0;       // pieces waiting or issuing
    std::array<uint64_t, kMaxAfter> after{};
    uint32_t n_after = 0;          // loads still running
    bool after_failed = false;
    kvo_completion_t completion{};
    bool has_gate() const { return gate != kNone; }
    uint32_t prev = kNone, next = kNone;  // gated, ready or done list
};

// A list of ops through their prev and next.
struct op_list {
    uint32_t first = kNone, last = kNone, n = 0;

    void push(std::vector<op_record>& ops, uint32_t i) {
        ops[i].prev = last;
        ops[i].next = kNone;
        (last == kNone ? first : ops[last].next) = i;
        last = i;
        ++n;
    }
    void remove(std::vector<op_record>& ops, uint32_t i) {
        const uint32_t prev = ops[i].prev, next = ops[i].next;
        (prev == kNone ? first : ops[prev].next) = next;
        (next == kNone ? last : ops[next].prev) = prev;
        ops[i].prev = ops[i].next = kNone;
        --n;
    }
};

}  // namespace kvo

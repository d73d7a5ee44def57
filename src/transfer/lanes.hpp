// The library's own streams and what is in flight on them. A slice is what was queued in one go, with the
// event recorded behind it. Main lanes (load, store) keep at most kMainDepth slices; side lanes carry ops
// that a wait pulled forward, one slice an op, under the op's own event. Internal to src/transfer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transfer/records.hpp"

namespace kvo {

enum lane_id : uint8_t { lane_load = 0, lane_store = 1, lane_side_load = 2, lane_side_store = 3 };
constexpr uint32_t kLanes = 4;
constexpr uint32_t kMainDepth = 3;  // the others keep the pipe full while the first is being noticed

struct slice_record {
    uint64_t serial = 0;
    void* event = nullptr;
    uint32_t first_piece = kNone;  // chain through next_in_slice
    uint32_t side_op = kNone;      // op whose event this is, on side lanes
    uint64_t bytes = 0;
    uint64_t queued_at_ns = 0;
    bool recorded = false;         // the event is behind all of it
};

struct lane_state {
    void* stream = nullptr;
    std::vector<slice_record> slices;  // ring
    uint32_t head = 0, n = 0;          // oldest, and how many are in flight
    uint64_t next_serial = 1;
    uint64_t last_end_ns = 0;
    std::array<void*, kMainDepth> events{};  // of main lanes

    slice_record& at(uint32_t k) { return slices[(head + k) % slices.size()]; }
    // The event that tells how slice k ended: its own, or where the device could not record that one
    // the next recorded behind it. An event tells of all errors since the one before it, so none is
    // ever recorded for a slice that others have been queued behind. nullptr: there is none yet.
    void* event_behind(uint32_t k) {
        for (; k < n; ++k) {
            if (at(k).recorded) return at(k).event;
        }
        return nullptr;
    }
};

inline bool is_load_lane(uint8_t lane) { return lane == lane_load || lane == lane_side_load; }

}  // namespace kvo

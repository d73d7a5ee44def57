// What was stored and removed, for kvo_events_poll: a ring that overwrites its oldest and counts
// what was lost. Not thread-safe (cache lock). No allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "kvoffload/kvo_stats.h"

namespace kvo {

class event_ring {
public:
    static uint64_t bytes_for(uint64_t n) { return n * sizeof(kvo_event_t); }
    void reset(uint64_t n) { ring_.assign(n, kvo_event_t{}); }

    void add(const kvo_event_t& event) {
        if (ring_.empty()) return;
        if (end_ - begin_ == ring_.size()) {
            ++begin_;
            ++lost_;
        }
        ring_[end_++ % ring_.size()] = event;
    }
    uint32_t take(kvo_event_t* out, uint32_t max, uint64_t* lost) {
        uint32_t n = 0;
        while (n < max && begin_ < end_) out[n++] = ring_[begin_++ % ring_.size()];
        *lost = lost_;
        lost_ = 0;
        return n;
    }

private:
    std::vector<kvo_event_t> ring_;
    uint64_t begin_ = 0, end_ = 0, lost_ = 0;
};

}  // namespace kvo

// How much may be in flight: a window per direction from the measured rate, and a token bucket for stores.
// Pure arithmetic on the times it is given; used by the progress thread only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvo {

class pacer {
public:
    static constexpr uint64_t kMostWindowBytes = uint64_t{4} << 20;
    // What one slice may take to drain. A worker that sleeps meanwhile takes tens of microseconds to wake up,
    // so its slices are longer.
    static constexpr uint64_t kPolledWindowNs = 80'000, kSleepingWindowNs = 240'000;

    pacer(uint64_t fixed_window_bytes, uint64_t store_bytes_per_s, bool worker_sleeps)
        : fixed_window_bytes_(fixed_window_bytes),
          window_ns_(worker_sleeps ? kSleepingWindowNs : kPolledWindowNs),
          store_bytes_per_s_(store_bytes_per_s),
          tokens_bytes_(static_cast<double>(kMostWindowBytes)) {}

    // Bytes of the next slice; never less than one piece goes, whatever this says.
    uint64_t window_bytes(bool is_load) const {
        if (fixed_window_bytes_ > 0) return std::min(fixed_window_bytes_, kMostWindowBytes);
        const double rate = bytes_per_ns_[is_load ? 0 : 1];
        if (rate <= 0) return kMostWindowBytes;
        const double window = rate * static_cast<double>(window_ns_);
        return window < static_cast<double>(kMostWindowBytes) ? static_cast<uint64_t>(window)
                                                              : kMostWindowBytes;
    }
    // A slice took this long. An average over about eight slices.
    void measured(bool is_load, uint64_t bytes, uint64_t ns) {
        if (ns == 0) return;
        double& rate = bytes_per_ns_[is_load ? 0 : 1];
        const double now = static_cast<double>(bytes) / static_cast<double>(ns);
        rate = rate <= 0 ? now : rate + (now - rate) / 8;
    }

    bool may_store(uint64_t now_ns) {
        if (store_bytes_per_s_ == 0) return true;
        const double ns = static_cast<double>(now_ns - std::min(now_ns, filled_at_ns_));
        const double gained = filled_at_ns_ == 0 ? 0 : ns * static_cast<double>(store_bytes_per_s_) * 1e-9;
        tokens_bytes_ = std::min(tokens_bytes_ + gained, static_cast<double>(kMostWindowBytes));
        filled_at_ns_ = now_ns;
        return tokens_bytes_ > 0;  // may go below zero by one slice, and waits that off
    }
    void stored(uint64_t bytes) {
        if (store_bytes_per_s_ > 0) tokens_bytes_ -= static_cast<double>(bytes);
    }

private:
    uint64_t fixed_window_bytes_;
    uint64_t window_ns_;
    uint64_t store_bytes_per_s_;
    double bytes_per_ns_[2] = {0, 0};  // load, store
    double tokens_bytes_;
    uint64_t filled_at_ns_ = 0;
};

}  // namespace kvo

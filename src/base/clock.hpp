// Time. Monotonic nanoseconds, so that wall-clock jumps change nothing; a test may put its own clock in.
// Any thread; never blocks.
#pragma once

#include <time.h>

#include <cstdint>

namespace kvo {

inline uint64_t read_clock(clockid_t id) noexcept {
    timespec t{};
    clock_gettime(id, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// A moment that much later; for ever stays for ever.
inline uint64_t add_ns(uint64_t at, uint64_t ns) noexcept {
    return ns > UINT64_MAX - at ? UINT64_MAX : at + ns;
}

struct time_source {
    uint64_t (*now)(void* context) = [](void*) { return read_clock(CLOCK_MONOTONIC); };
    void* context = nullptr;
    uint64_t now_ns() const noexcept { return now(context); }
};

inline uint64_t thread_cpu_ns() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace kvo

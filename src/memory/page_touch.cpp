#include "memory/page_touch.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/math.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace kvo {

namespace {

void touch_range(uint8_t* base, uint64_t bytes) {
    if (bytes == 0 || madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return;
    // Older kernels: an atomic "or" with nothing writes to the page and keeps what others put there.
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (uint64_t at = 0; at < bytes; at += page) {
        std::atomic_ref<uint8_t>(base[at]).fetch_or(0, std::memory_order_relaxed);
    }
}

}  // namespace

void touch_pages(uint8_t* base, uint64_t bytes, uint32_t n_threads) {
    constexpr uint64_t kShare = uint64_t{2} << 20;  // one huge page; less is not worth a thread
    const uint64_t n_shares = div_up(bytes, kShare);
    const auto n = static_cast<uint32_t>(std::clamp<uint64_t>(n_threads, 1, std::max<uint64_t>(n_shares, 1)));
    const auto part = [=](uint32_t i) {
        const uint64_t begin = n_shares * i / n * kShare;
        const uint64_t end = std::min(bytes, n_shares * (i + 1) / n * kShare);
        if (begin < end) touch_range(base + begin, end - begin);
    };
    std::vector<std::thread> helpers;
    helpers.reserve(n);
    uint32_t begun = 1;
    try {
        for (; begun < n; ++begun) helpers.emplace_back(part, begun);
    } catch (const std::system_error&) {
        // No more threads are to be had: the rest is done here.
    }
    for (uint32_t i = begun; i < n; ++i) part(i);
    part(0);
    for (auto& helper : helpers) helper.join();
}

void prefer_node(uint8_t* base, uint64_t bytes, int32_t node) {
    constexpr int kPreferred = 1;  // MPOL_PREFERRED: another node is better than no memory
    constexpr int32_t kMaxNode = 63;
    if (node < 0 || node > kMaxNode) return;
    const unsigned long mask = 1ul << node;
    // Called by number, so that nothing of libnuma is linked. Failure leaves the system's own choice.
    (void)syscall(SYS_mbind, base, bytes, kPreferred, &mask, sizeof(mask) * 8, 0);
}

}  // namespace kvo

// Copies between ordinary memory and the pool: memcpy for small pieces, non-temporal stores for large ones,
// which would only push the engine's data out of the caches. Pure functions over memory; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvo {

// From this size on a copy bypasses the caches (bench/host_device_bench.cpp).
constexpr size_t kNonTemporalBytes = 16 * 1024;

// Copies; large pieces with non-temporal stores where the CPU has them. The bytes are surely visible to
// other threads only after copy_fence().
void host_copy(void* dst, const void* src, size_t bytes) noexcept;
void non_temporal_copy(void* dst, const void* src, size_t bytes) noexcept;
// Orders non-temporal stores before what follows.
void copy_fence() noexcept;

}  // namespace kvo

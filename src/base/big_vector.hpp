// A std::vector whose memory, once it is large, lies on whole 2 MiB pages where the kernel gives
// them, so that a random access costs one cache miss and not a walk of the page table beside it.
// Constructing it touches every page: nothing is faulted in later. A forked child does not have it.
// Ownership and thread-safety are those of std::vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvo {

// Throws std::bad_alloc, as allocators do. Aligned to 64 bytes at least.
void* allocate_big(size_t bytes);
void free_big(void* p, size_t bytes) noexcept;

template <typename T>
struct big_allocator {
    using value_type = T;
    big_allocator() = default;
    template <typename Other>
    big_allocator(const big_allocator<Other>&) noexcept {}
    T* allocate(size_t n) { return static_cast<T*>(allocate_big(n * sizeof(T))); }
    void deallocate(T* p, size_t n) noexcept { free_big(p, n * sizeof(T)); }
    bool operator==(const big_allocator&) const noexcept { return true; }
};

template <typename T>
using big_vector = std::vector<T, big_allocator<T>>;

}  // namespace kvo

#include "base/big_vector.hpp"

#include <sys/mman.h>

#include <new>

#include "base/math.hpp"

namespace kvo {

namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kPageBytes = 4096;
constexpr std::align_val_t kAlignment{64};

}  // namespace

void* allocate_big(size_t bytes) {
    if (bytes < kHugePageBytes) return ::operator new(bytes, kAlignment);
    const size_t used = align_up(bytes, kPageBytes);
    const size_t mapped = used + kHugePageBytes;
    void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    const auto begin = reinterpret_cast<uintptr_t>(raw);
    const uintptr_t aligned = align_up(begin, kHugePageBytes);
    const size_t before = aligned - begin, after = kHugePageBytes - before;
    if (before > 0) munmap(raw, before);
    if (after > 0) munmap(reinterpret_cast<void*>(aligned + used), after);
    // Refused where huge pages are off: small ones do as well, only slower.
    (void)madvise(reinterpret_cast<void*>(aligned), used, MADV_HUGEPAGE);
    // A fork would make the next write to each page copy all of it.
    (void)madvise(reinterpret_cast<void*>(aligned), used, MADV_DONTFORK);
    return reinterpret_cast<void*>(aligned);
}

void free_big(void* p, size_t bytes) noexcept {
    if (bytes < kHugePageBytes) {
        ::operator delete(p, kAlignment);
    } else {
        munmap(p, align_up(bytes, kPageBytes));
    }
}

}  // namespace kvo

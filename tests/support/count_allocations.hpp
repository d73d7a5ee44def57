// Counts malloc and its relatives and mmap on all threads of a test executable. The functions are replaced, so
// exactly one file of an executable includes this. Under sanitizers, which replace them too, there is nothing
// to count: KVO_COUNT_ALLOCATIONS is 0 then.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KVO_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KVO_COUNT_ALLOCATIONS 0
#endif
#endif
#if !defined(KVO_COUNT_ALLOCATIONS) && defined(__GLIBC__)
#define KVO_COUNT_ALLOCATIONS 1
#endif

#if KVO_COUNT_ALLOCATIONS

namespace kvo::test {

inline std::atomic<uint64_t> n_allocations{0};
inline std::atomic<bool> counting{false};
inline void count_allocation() {
    if (counting.load(std::memory_order_relaxed))
        n_allocations.fetch_add(1, std::memory_order_relaxed);
}
struct counted {
    counted() {
        n_allocations = 0;
        counting = true;
    }
    ~counted() { counting = false; }
    uint64_t n() const { return n_allocations.load(); }
};

}  // namespace kvo::test

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
    kvo::test::count_allocation();
    return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
    kvo::test::count_allocation();
    return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
    kvo::test::count_allocation();
    return __libc_realloc(p, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
    kvo::test::count_allocation();
    return __libc_memalign(alignment, n);
}
int posix_memalign(void** out, size_t alignment, size_t n) {
    kvo::test::count_allocation();
    *out = __libc_memalign(alignment, n);
    return *out != nullptr ? 0 : ENOMEM;
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
    kvo::test::count_allocation();
    const long result = syscall(SYS_mmap, at, n, protection, flags, fd, offset);
    return result == -1 ? MAP_FAILED : reinterpret_cast<void*>(result);
}
}

#endif

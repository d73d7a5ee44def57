// One piece of memory for all pools of the sequence level, mapped once at start and carved up in
// order. Pages stay untouched until they are used. Not thread-safe; what it hands out lives as long
// as it does.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/math.hpp"

namespace kvo {

class region {
public:
    region() = default;
    ~region() {
        if (base_ != nullptr) munmap(base_, bytes_);
    }
    region(const region&) = delete;
    region& operator=(const region&) = delete;

    bool map(uint64_t bytes) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return false;
        base_ = static_cast<std::byte*>(at);
        bytes_ = bytes;
        return true;
    }

    // What take<T>(n) uses up.
    template <typename T>
    static constexpr uint64_t bytes_for(uint64_t n) {
        return align_up(n * sizeof(T), kAlignment);
    }
    // n objects, zero where T is trivial, else value-initialised. The caller has mapped enough.
    template <typename T>
    T* take(uint64_t n) {
        static_assert(alignof(T) <= kAlignment && std::is_trivially_destructible_v<T>);
        T* at = reinterpret_cast<T*>(base_ + used_);
        used_ += bytes_for<T>(n);
        if constexpr (!std::is_trivially_default_constructible_v<T>) {
            std::uninitialized_value_construct_n(at, n);
        }
        return at;
    }
    uint64_t used() const { return used_; }

private:
    static constexpr uint64_t kAlignment = 64;
    std::byte* base_ = nullptr;
    uint64_t bytes_ = 0, used_ = 0;
};

}  // namespace kvo

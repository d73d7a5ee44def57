// Arithmetic on sizes that come from callers: every product and sum is checked. Pure functions.
#pragma once

#include <cstdint>

namespace kvo {

[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t* out) noexcept {
    return !__builtin_mul_overflow(a, b, out);
}
[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t* out) noexcept {
    return !__builtin_add_overflow(a, b, out);
}
// alignment: a power of two. The caller has checked that the sum fits.
constexpr uint64_t align_up(uint64_t value, uint64_t alignment) noexcept {
    return (value + alignment - 1) & ~(alignment - 1);
}
constexpr uint64_t div_up(uint64_t value, uint64_t by) noexcept { return (value + by - 1) / by; }

}  // namespace kvo

#include "device/host_copy.hpp"

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvo {

#if defined(__x86_64__)

namespace {

constexpr size_t kLine = 64;

__attribute__((target("avx"))) void stream_lines_avx(uint8_t* dst, const uint8_t* src, size_t lines) {
    for (size_t i = 0; i < lines; ++i, dst += kLine, src += kLine) {
        _mm_prefetch(reinterpret_cast<const char*>(src + 8 * kLine), _MM_HINT_NTA);
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + 32));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(dst), a);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + 32), b);
    }
}

void stream_lines_sse2(uint8_t* dst, const uint8_t* src, size_t lines) {
    for (size_t i = 0; i < lines; ++i) {
        for (size_t k = 0; k < kLine; k += 16, dst += 16, src += 16) {
            const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
            _mm_stream_si128(reinterpret_cast<__m128i*>(dst), v);
        }
    }
}

}  // namespace

void non_temporal_copy(void* dst, const void* src, size_t bytes) noexcept {
    auto* d = static_cast<uint8_t*>(dst);
    const auto* s = static_cast<const uint8_t*>(src);
    const size_t to_line = (kLine - reinterpret_cast<uintptr_t>(d) % kLine) % kLine;
    if (bytes <= to_line + kLine) {
        std::memcpy(d, s, bytes);
        return;
    }
    std::memcpy(d, s, to_line);  // streaming stores need aligned lines
    d += to_line;
    s += to_line;
    bytes -= to_line;
    static const bool has_avx = __builtin_cpu_supports("avx") != 0;
    (has_avx ? stream_lines_avx : stream_lines_sse2)(d, s, bytes / kLine);
    const size_t done = bytes / kLine * kLine;
    std::memcpy(d + done, s + done, bytes - done);
}

void copy_fence() noexcept { _mm_sfence(); }

#else

void non_temporal_copy(void* dst, const void* src, size_t bytes) noexcept {
    std::memcpy(dst, src, bytes);
}
void copy_fence() noexcept { std::atomic_thread_fence(std::memory_order_release); }

#endif

void host_copy(void* dst, const void* src, size_t bytes) noexcept {
    if (bytes >= kNonTemporalBytes) {
        non_temporal_copy(dst, src, bytes);
    } else {
        std::memcpy(dst, src, bytes);
    }
}

}  // namespace kvo

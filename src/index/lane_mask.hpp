// Which of eight numbers equal a wanted one, as a bit mask: one step without branches where the
// processor has it, for tables whose buckets are eight numbers wide. Pure functions.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvo {

inline unsigned lanes_equal(const uint32_t (&lanes)[8], uint32_t wanted) {
#if defined(__SSE2__)
    const auto* at = reinterpret_cast<const __m128i*>(lanes);
    const __m128i all = _mm_set1_epi32(static_cast<int>(wanted));
    const __m128i low = _mm_cmpeq_epi32(_mm_load_si128(at), all);
    const __m128i high = _mm_cmpeq_epi32(_mm_load_si128(at + 1), all);
    const __m128i words = _mm_packs_epi32(low, high);
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(words, words))) & 0xFFu;
#else
    unsigned mask = 0;
    for (unsigned i = 0; i < 8; ++i) mask |= (lanes[i] == wanted ? 1u : 0u) << i;
    return mask;
#endif
}

inline unsigned lowest_lane(unsigned mask) { return static_cast<unsigned>(__builtin_ctz(mask)); }

}  // namespace kvo

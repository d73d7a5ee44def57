// Checks what a caller configures and fills in the defaults. Pure functions: any thread, no state.
#pragma once

#include "base/status.hpp"
#include "kvoffload/kvo_cache.h"

namespace kvo {

// The copy in *out has every sentinel replaced, except max_pinned_bytes (half of the slots, known
// later) and window_bytes (0: from the cost model).
status check_config(const kvo_config_t& config, kvo_config_t* out);

status check_struct(const char* what, uint32_t size, uint32_t version, uint64_t expected_size);

// A default that stands for "not given".
constexpr uint64_t or_default(uint64_t value, uint64_t fallback) noexcept {
    return value == KVO_DEFAULT_U64 ? fallback : value;
}
constexpr uint32_t or_default(uint32_t value, uint32_t fallback) noexcept {
    return value == KVO_DEFAULT_U32 ? fallback : value;
}

}  // namespace kvo

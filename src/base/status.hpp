// Status codes inside the library and the text of the last failure. The codes are those of the C header:
// one vocabulary for all layers. fail() formats into a fixed buffer of the calling thread, so that
// reporting an error never allocates; any thread.
#pragma once

#include <fmt/core.h>

#include <utility>

#include "kvoffload/kvo_base.h"

namespace kvo {

using status = kvo_status_t;

constexpr unsigned kErrorTextBytes = 512;

// The calling thread's text buffer, kErrorTextBytes long, always zero terminated.
char* error_text() noexcept;

// Sets the text of this thread and returns `code`, so that callers write `return fail(...)`.
template <typename... Args>
[[nodiscard]] status fail(status code, fmt::format_string<Args...> format, Args&&... args) noexcept {
    auto end = fmt::format_to_n(error_text(), kErrorTextBytes - 1, format, std::forward<Args>(args)...);
    *end.out = '\0';
    return code;
}

const char* status_name(status code) noexcept;

}  // namespace kvo

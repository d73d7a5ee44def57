// Which format a trace is in, told from its first line. Any thread.
#pragma once

#include <string_view>

#include "trace/json_line.hpp"
#include "trace/trace.hpp"

namespace kvo::trace {

// `first_line` is not blank.
reason detect_format(std::string_view first_line, format* out);

uint32_t default_block_tokens(format f);
// Why `block_tokens` cannot be used with this format, or nothing.
reason check_block_tokens(format f, uint32_t block_tokens);

}  // namespace kvo::trace

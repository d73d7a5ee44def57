// Reads a trace given as text, for the tests of the readers. Single-threaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/temp_file.hpp"
#include "trace/trace.hpp"

namespace kvo::test {

struct trace_result {
    std::string error;  // without the file name; empty when the trace was read
    std::vector<trace::request> requests;
    trace::summary info;
};

inline trace_result read_text(std::string_view text, const trace::read_options& options = {}) {
    trace_result result;
    const temp_file file(text);
    auto fault = trace::read_requests(file.path(), options, &result.requests, &result.info);
    if (fault) result.error = fault->text.substr(file.path().size());
    return result;
}

inline trace_result read_text(std::string_view text, uint32_t block_tokens) {
    trace::read_options options;
    options.block_tokens = block_tokens;
    return read_text(text, options);
}

using ids = std::vector<uint32_t>;

}  // namespace kvo::test

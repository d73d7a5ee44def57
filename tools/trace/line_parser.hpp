// What a trace format does with its lines. The driver in read.cpp owns the parser, feeds it the
// lines and puts file and line before its faults. One user at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace kvo::trace {

// Most block ids of one request, far above real ones: it bounds what one short line can ask for.
inline constexpr uint64_t kIdsPerRequestMax = uint64_t{1} << 22;

struct fault {
    std::string reason;
    uint64_t line_number = 0;  // 0: the line just given, or none at the end of the file
};

class line_parser {
public:
    virtual ~line_parser() = default;
    // `text` is not blank.
    virtual std::optional<fault> line(std::string_view text, uint64_t line_number) = 0;
    virtual std::optional<fault> finish() { return std::nullopt; }
    virtual uint32_t unique_blocks() const = 0;
};

// The factories of the formats. `options.block_tokens` is already the one to use.
std::unique_ptr<line_parser> make_chained_parser(const read_options& options,
                                                 const request_sink& sink);  // Mooncake, rtp-llm
std::unique_ptr<line_parser> make_weka_parser(const read_options& options,
                                              const request_sink& sink);
std::unique_ptr<line_parser> make_lmcache_parser(const read_options& options,
                                                 const request_sink& sink);
std::unique_ptr<line_parser> make_csv_parser(const read_options& options, const request_sink& sink);

// Time must not run backwards: a replay would wait for ever or not at all.
class clock_check {
public:
    // `shown` is the value as the file has it.
    std::optional<std::string> advance(double now_ms, const std::string& shown) {
        if (now_ms < last_ms_) {
            return "timestamp " + shown + " is before " + last_shown_ + " of the request before it";
        }
        last_ms_ = now_ms;
        last_shown_ = shown;
        return std::nullopt;
    }

private:
    double last_ms_ = 0;
    std::string last_shown_;
};

}  // namespace kvo::trace

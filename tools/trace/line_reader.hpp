// Lines of a byte source with their numbers, in memory bounded by the longest line allowed. The
// reader owns the source. One user at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/byte_source.hpp"

namespace kvo::trace {

class line_reader {
public:
    // Longest line taken; a request of a million blocks needs about 10 MB.
    static constexpr size_t kLineBytesMax = size_t{32} << 20;

    explicit line_reader(std::unique_ptr<byte_source> source) : source_(std::move(source)) {}

    // The next line without its end (\n or \r\n), valid until the next call. Nothing at the end, or
    // on a failure: then failed() is true and reason() says why.
    std::optional<std::string_view> next();

    uint64_t line_number() const { return line_number_; }
    bool failed() const { return !reason_.empty(); }
    const std::string& reason() const { return reason_; }
    const byte_source& source() const { return *source_; }

private:
    bool fill();
    std::string_view take(size_t length, size_t end_length);

    std::unique_ptr<byte_source> source_;
    std::vector<char> buffer_;
    size_t begin_ = 0;  // first byte not given out
    size_t end_ = 0;    // one past the last byte read
    uint64_t line_number_ = 0;
    bool ended_ = false;
    std::string reason_;
};

}  // namespace kvo::trace

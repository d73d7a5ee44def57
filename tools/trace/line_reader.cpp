#include "trace/line_reader.hpp"

#include <cstring>

namespace kvo::trace {

std::string_view line_reader::take(size_t length, size_t end_length) {
    std::string_view line(buffer_.data() + begin_, length);
    begin_ += length + end_length;
    ++line_number_;
    if (line_number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

bool line_reader::fill() {
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (end_ > kLineBytesMax) {
        ++line_number_;
        reason_ = "line longer than " + std::to_string(kLineBytesMax) + " bytes";
        return false;
    }
    if (end_ == buffer_.size()) buffer_.resize(buffer_.empty() ? 1 << 16 : 2 * buffer_.size());
    const size_t got = source_->read(buffer_.data() + end_, buffer_.size() - end_, &reason_);
    if (!reason_.empty()) {
        // A fault of the stored bytes has an offset, not a line.
        line_number_ = 0;
        return false;
    }
    end_ += got;
    ended_ = got == 0;
    return true;
}

std::optional<std::string_view> line_reader::next() {
    size_t searched = 0;
    while (!failed()) {
        const char* from = buffer_.data() + begin_ + searched;
        const size_t length = end_ - begin_ - searched;
        const void* newline = length > 0 ? std::memchr(from, '\n', length) : nullptr;
        if (newline != nullptr) {
            const char* at = static_cast<const char*>(newline);
            return take(static_cast<size_t>(at - (buffer_.data() + begin_)), 1);
        }
        searched = end_ - begin_;
        if (ended_) {
            if (searched == 0) return std::nullopt;
            return take(searched, 0);
        }
        fill();
    }
    return std::nullopt;
}

}  // namespace kvo::trace

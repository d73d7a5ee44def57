#include "trace/block_fit.hpp"

namespace kvo::trace {

std::string block_fit::advice() const {
    std::string lines = "all " + std::to_string(lines_) + " lines";
    if (lines_ == 1) lines = "this line";
    if (lines_ == 2) lines = "both lines";
    if (smallest_ > largest_) return "no block size fits " + lines;
    std::string sizes = std::to_string(smallest_);
    if (largest_ == kNoLimit) {
        sizes += " or more";
    } else if (largest_ > smallest_) {
        sizes += " to " + std::to_string(largest_);
    }
    return sizes + " would fit " + lines;
}

}  // namespace kvo::trace

// Which block sizes explain the number of block ids that requests of known length carry. The unit
// is not in the file, and a wrong one makes every figure silently wrong, so all lines must agree on
// it. One user at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace kvo::trace {

enum class last_block : uint8_t {
    counted,
    dropped
};  // a partial last block has an id, or has none

class block_fit {
public:
    explicit block_fit(last_block rule) : rule_(rule) {}

    uint64_t ids_for(uint64_t tokens, uint64_t block_tokens) const {
        const uint64_t whole = tokens / block_tokens;
        return rule_ == last_block::counted && tokens % block_tokens != 0 ? whole + 1 : whole;
    }

    // Keeps the block sizes that also explain this line.
    void narrow(uint64_t ids, uint64_t tokens) {
        ++lines_;
        if (rule_ == last_block::dropped) {
            // floor(tokens / b) == ids
            smallest_ = std::max(smallest_, tokens / (ids + 1) + 1);
            if (ids > 0) largest_ = std::min(largest_, tokens / ids);
            return;
        }
        // ceil(tokens / b) == ids
        if ((ids == 0) != (tokens == 0)) largest_ = 0;
        if (ids == 0) return;
        smallest_ = std::max(smallest_, (tokens + ids - 1) / ids);
        if (ids > 1) largest_ = std::min(largest_, (tokens - 1) / (ids - 1));
    }

    // "50 to 64 would fit both lines"
    std::string advice() const;

private:
    static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

    last_block rule_;
    uint64_t smallest_ = 1;
    uint64_t largest_ = kNoLimit;
    uint64_t lines_ = 0;
};

}  // namespace kvo::trace

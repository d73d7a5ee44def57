// Gives keys the numbers 0, 1, 2, ... by first appearance. Bounded, so that a hostile file ends
// with an error and not with the machine's memory. One user at a time.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace kvo::trace {

// 33 million blocks; as 16-token blocks they are 537 million tokens.
inline constexpr uint32_t kUniqueBlocksMax = uint32_t{1} << 25;
inline constexpr const char* kTooManyUnique = "more than 33554432 different blocks";

template <typename Key>
class dense_numbers {
public:
    // False when the limit is reached; then nothing changed.
    bool number_of(Key key, uint32_t* out) {
        const auto next = static_cast<uint32_t>(numbers_.size());
        if (next >= kUniqueBlocksMax && !numbers_.contains(key)) return false;
        *out = numbers_.try_emplace(std::move(key), next).first->second;
        return true;
    }

    uint32_t count() const { return static_cast<uint32_t>(numbers_.size()); }
    void clear() { numbers_.clear(); }

private:
    std::unordered_map<Key, uint32_t> numbers_;
};

}  // namespace kvo::trace

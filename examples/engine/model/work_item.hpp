// One piece of a forward pass: the seam between whoever schedules requests and whoever computes. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace engine {

// Compute `tokens` at positions first_position, first_position + 1, ... of a sequence whose KV lies in the
// device blocks of `table`; everything before first_position is there already.
struct work_item {
    std::span<const uint32_t> tokens;
    uint32_t first_position = 0;
    std::span<const uint32_t> table;
    bool wants_token = false;  // the token that follows the last one is needed
};
// Runs the items in one pass; next[i] gets the greedy token of items that want one.
using forward_fn = std::function<void(std::span<const work_item> items, std::span<uint32_t> next)>;

}  // namespace engine

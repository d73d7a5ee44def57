// Where the parts of a group lie in device memory: checks that every part is sound by itself and
// that no two of them share a byte. Pure functions over the numbers; nothing is dereferenced.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "kvoffload/kvo_cache.h"

namespace kvo {

// A part with the number of its blocks; group and index are for messages.
struct placed_part {
    kvo_part_t part{};
    uint32_t n_blocks = 0;
    uint32_t group = 0, index = 0;
};

// Alignment, sizes, stride against part, end of the address range.
status check_part(const placed_part& p);
// Do two sound parts share a byte?
status check_apart(const placed_part& a, const placed_part& b);

}  // namespace kvo

// Coarser blocks out of chained ones: an id stands for its block and all before it, so a block of n
// pieces is the id at every n-th position, and a tail shorter than that has none. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvo::trace {

inline void append_coarse(const std::vector<uint32_t>& fine, size_t pieces,
                          std::vector<uint32_t>* out) {
    for (size_t i = pieces; i <= fine.size(); i += pieces) out->push_back(fine[i - 1]);
}

}  // namespace kvo::trace

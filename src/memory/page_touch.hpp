// Makes pages resident, in parallel. Internal to src/memory.
#pragma once

#include <cstdint>

namespace kvo {

// Touches every page of [base, base + bytes) without changing its contents, with up to n_threads threads.
// The range must be writable and page aligned. Blocks until done.
void touch_pages(uint8_t* base, uint64_t bytes, uint32_t n_threads);

// Prefer memory of this node for pages touched later; without effect where there is one node.
void prefer_node(uint8_t* base, uint64_t bytes, int32_t node);

}  // namespace kvo

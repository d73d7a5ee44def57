// Counts what a cache of a given size would have hit, with the library's own policies: no second
// implementation that could disagree. Single-threaded.
#pragma once

#include <cstdint>
#include <functional>

#include "kvoffload/kvo_cache.h"
#include "trace/trace.hpp"

namespace kvo::tools {

// flat: every access counts on its own, in the order given.
// prefix: of each request the leading run of resident blocks counts; then all its blocks are
// touched or inserted from last to first.
enum class hit_mode : uint8_t { flat, prefix };

struct hit_counts {
    uint64_t hits = 0;
    uint64_t hit_tokens =
        0;  // prompt tokens of the blocks that hit; 0 when the trace has no lengths
};

struct hit_question {
    kvo_policy_t policy = KVO_POLICY_LRU;
    hit_mode mode = hit_mode::flat;
    uint64_t blocks = 0;  // at least 1
};

// `on_progress` gets requests done and in all.
hit_counts count_hits(const trace::sequence& sequence, const hit_question& question,
                      const std::function<void(uint64_t done, uint64_t total)>& on_progress);

}  // namespace kvo::tools

// Names of open caches. A kvo_cache_t* is a place and a generation in disguise and is never followed, so
// that a destroyed, foreign or made-up pointer is answered with an error. Any thread; the table is
// process-wide, fixed, and without locks on look-up.
#pragma once

#include <atomic>
#include <memory>

#include "cache/cache.hpp"
#include "sequence/sequences.hpp"

namespace kvo::capi {

struct open_cache {
    // The cache goes first: while it empties itself it still tells the sequences what to forget.
    std::unique_ptr<kvo::sequences> sequences;
    std::unique_ptr<kvo::cache> blocks;
    std::atomic<bool> started{false};
};

constexpr uint32_t kMostCaches = 256;

open_cache* find_cache(const kvo_cache_t* name) noexcept;
// KVO_E_OPS_FULL when kMostCaches are open.
status add_cache(std::unique_ptr<open_cache> c, kvo_cache_t** name);
// The name is stale from here on.
std::unique_ptr<open_cache> remove_cache(const kvo_cache_t* name) noexcept;

// Creates over a given device instead of the configured one (tests). Not part of the interface.
status create_cache(const kvo_config_t& config, const device_table* device, const time_source& time,
                    kvo_cache_t** out);

}  // namespace kvo::capi

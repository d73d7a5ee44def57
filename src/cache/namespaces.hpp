// The namespaces of a cache: names, options, and what a purge needs to know of each. Namespaces
// live as long as the cache. Sized once from the budget. Not thread-safe (cache lock).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/status.hpp"
#include "kvoffload/kvo_cache.h"

namespace kvo {

struct ns_record {
    uint32_t name_begin = 0;
    uint16_t name_bytes = 0;
    bool scrub = false;
    uint8_t side = 0;  // which half of dead[] counts removals now
    uint32_t next_in_bucket = UINT32_MAX;
    uint32_t purges = 0;        // calls running across a purge notice it by this
    uint32_t dead[2] = {0, 0};  // removed entries whose bytes are still in use
    uint32_t draining = UINT32_MAX, waiting = UINT32_MAX;  // purges, see purge_queue
};

class namespace_table {
public:
    static uint64_t bytes_for(uint64_t budget_bytes);
    namespace_table(uint64_t budget_bytes, uint32_t cache_tag);

    status open(std::string_view name, const kvo_ns_options_t& options, kvo_ns_t* out);
    // KVO_E_HANDLE for a namespace of another cache or none.
    status find(kvo_ns_t ns, ns_id* out) const;
    kvo_ns_t handle(ns_id ns) const;
    ns_record& operator[](ns_id ns) { return records_[raw(ns)]; }
    std::string_view name(ns_id ns) const;
    uint32_t size() const { return static_cast<uint32_t>(records_.size()); }

private:
    std::vector<ns_record> records_;  // [0] is the default one
    std::vector<char> names_;
    std::vector<uint32_t> buckets_;
    uint32_t tag_;
};

}  // namespace kvo

#include "index/policy.hpp"

#include <cstring>

#include "index/arc.hpp"
#include "index/lru.hpp"

namespace kvo {

uint64_t policy_bytes(kvo_policy_t kind, uint32_t max_entries) {
    return kind == KVO_POLICY_ARC ? arc_policy::bytes_for(max_entries)
                                  : lru_policy::bytes_for(max_entries);
}

std::unique_ptr<policy> make_policy(kvo_policy_t kind, uint32_t max_entries) {
    if (kind == KVO_POLICY_ARC) return std::make_unique<arc_policy>(max_entries);
    return std::make_unique<lru_policy>(max_entries);
}

bool parse_policy(const char* name, kvo_policy_t* out) {
    if (std::strcmp(name, "lru") == 0) {
        *out = KVO_POLICY_LRU;
    } else if (std::strcmp(name, "arc") == 0) {
        *out = KVO_POLICY_ARC;
    } else {
        return false;
    }
    return true;
}

}  // namespace kvo

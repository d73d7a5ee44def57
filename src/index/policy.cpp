#include "index/policy.hpp"

#include <cstring>

#include "base/big_vector.hpp"
#include "index/arc.hpp"
#include "index/lru.hpp"

namespace kvo {

namespace {

struct alignas(16) own_node {
    order_node node;
};

// A policy with its nodes.
template <typename Policy>
class stand_alone final : private big_vector<own_node>, public Policy {
public:
    explicit stand_alone(uint32_t n)
        : big_vector<own_node>(n), Policy(n, order_nodes(&this->data()->node, 4)) {}
};
static_assert(sizeof(own_node) == 1u << 4);

}  // namespace

std::unique_ptr<policy> make_policy(kvo_policy_t kind, uint32_t max_entries, order_nodes nodes) {
    if (kind == KVO_POLICY_ARC) return std::make_unique<arc_policy>(max_entries, nodes);
    return std::make_unique<lru_policy>(max_entries, nodes);
}

std::unique_ptr<policy> make_policy(kvo_policy_t kind, uint32_t max_entries) {
    if (kind == KVO_POLICY_ARC) return std::make_unique<stand_alone<arc_policy>>(max_entries);
    return std::make_unique<stand_alone<lru_policy>>(max_entries);
}

uint64_t policy_bytes(kvo_policy_t kind, uint32_t max_entries) {
    return kind == KVO_POLICY_ARC ? arc_policy::bytes_for(max_entries) : 0;
}

uint64_t ghost_bytes(kvo_policy_t kind, uint32_t max_entries) {
    return kind == KVO_POLICY_ARC ? arc_policy::ghost_bytes_for(max_entries) : 0;
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

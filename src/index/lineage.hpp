// Who hangs on whom: parent links, and the children of each entry as a ring. When a parent leaves, its whole
// ring becomes part of the ring of orphans in constant time. A link is good while the parent's stamp is the
// one it was made with; unlinking a parent changes its stamp. No allocation. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "index/order_list.hpp"

namespace kvo {

class lineage_rings {
public:
    explicit lineage_rings(uint32_t max_entries) : nodes_(max_entries) {}
    static uint64_t bytes_for(uint32_t max_entries) { return uint64_t{max_entries} * sizeof(node); }

    void start(uint32_t e) {
        const uint32_t stamp = nodes_[e].stamp;
        nodes_[e] = node{};
        nodes_[e].stamp = stamp;
    }
    void link(uint32_t e, uint32_t parent);
    // e goes: out of its ring, its children become orphans. Returns how many.
    uint32_t unlink(uint32_t e);

    bool has_parent(uint32_t e) const { return nodes_[e].parent != kNil; }
    bool is_orphan(uint32_t e) const { return has_parent(e) && !parent_lives(e); }
    uint32_t parent(uint32_t e) const {
        return has_parent(e) && parent_lives(e) ? nodes_[e].parent : kNil;
    }
    uint32_t first_child(uint32_t e) const { return nodes_[e].first_child; }
    // kNil after the last.
    uint32_t next_sibling(uint32_t e) const;

    uint32_t first_orphan() const { return orphans_; }
    // The first orphan becomes the last.
    void rotate_orphans() { orphans_ = orphans_ == kNil ? kNil : nodes_[orphans_].next; }
    uint32_t n_orphans() const { return n_orphans_; }

private:
    struct node {
        uint32_t parent = kNil;
        uint32_t parent_stamp = 0;
        uint32_t stamp = 0;
        uint32_t first_child = kNil;
        uint32_t n_children = 0;
        uint32_t next = kNil, prev = kNil;  // ring of siblings or of orphans
    };

    bool parent_lives(uint32_t e) const {
        return nodes_[nodes_[e].parent].stamp == nodes_[e].parent_stamp;
    }
    void ring_add(uint32_t* head, uint32_t e);
    void ring_remove(uint32_t* head, uint32_t e);
    void leave_ring(uint32_t e);

    std::vector<node> nodes_;
    uint32_t orphans_ = kNil;
    uint32_t n_orphans_ = 0;
};

}  // namespace kvo

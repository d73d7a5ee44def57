#include "index/lineage.hpp"

#include <utility>

namespace kvo {

void lineage_rings::ring_add(uint32_t* head, uint32_t e) {
    if (*head == kNil) {
        nodes_[e].next = nodes_[e].prev = e;
        *head = e;
        return;
    }
    const uint32_t first = *head, last = nodes_[first].prev;
    nodes_[e].prev = last;
    nodes_[e].next = first;
    nodes_[last].next = nodes_[first].prev = e;
}

void lineage_rings::ring_remove(uint32_t* head, uint32_t e) {
    const uint32_t next = nodes_[e].next, prev = nodes_[e].prev;
    nodes_[prev].next = next;
    nodes_[next].prev = prev;
    if (*head == e) *head = next == e ? kNil : next;
    nodes_[e].next = nodes_[e].prev = kNil;
}

void lineage_rings::leave_ring(uint32_t e) {
    if (!has_parent(e)) return;
    if (is_orphan(e)) {
        ring_remove(&orphans_, e);
        --n_orphans_;
    } else {
        node& parent = nodes_[nodes_[e].parent];
        ring_remove(&parent.first_child, e);
        --parent.n_children;
    }
    nodes_[e].parent = kNil;
}

void lineage_rings::link(uint32_t e, uint32_t parent) {
    if (nodes_[e].parent == parent && parent_lives(e)) return;
    leave_ring(e);
    nodes_[e].parent = parent;
    nodes_[e].parent_stamp = nodes_[parent].stamp;
    ring_add(&nodes_[parent].first_child, e);
    ++nodes_[parent].n_children;
}

uint32_t lineage_rings::unlink(uint32_t e) {
    leave_ring(e);
    const uint32_t children = nodes_[e].first_child;
    const uint32_t n = nodes_[e].n_children;
    ++nodes_[e].stamp;  // every link to e is stale from here on
    nodes_[e].first_child = kNil;
    nodes_[e].n_children = 0;
    if (children == kNil) return 0;
    if (orphans_ == kNil) {
        orphans_ = children;
    } else {  // two rings into one
        const uint32_t last_orphan = nodes_[orphans_].prev, last_child = nodes_[children].prev;
        nodes_[last_orphan].next = children;
        nodes_[children].prev = last_orphan;
        nodes_[last_child].next = orphans_;
        nodes_[orphans_].prev = last_child;
    }
    n_orphans_ += n;
    return n;
}

uint32_t lineage_rings::next_sibling(uint32_t e) const {
    if (!has_parent(e) || is_orphan(e)) return kNil;
    const uint32_t next = nodes_[e].next;
    return next == nodes_[nodes_[e].parent].first_child ? kNil : next;
}

}  // namespace kvo

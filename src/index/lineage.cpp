#include "index/lineage.hpp"

namespace kvo {

void lineage_rings::start(uint32_t e) {
    records_[e].parent = kNil;
    record_side& side = sides_[e];
    side.first_child = side.next = side.prev = kNil;
    side.n_children = 0;
}

// As the last of the ring.
void lineage_rings::ring_add(uint32_t* head, uint32_t e) {
    if (*head == kNil) {
        sides_[e].next = sides_[e].prev = e;
        *head = e;
        return;
    }
    const uint32_t first = *head, last = sides_[first].prev;
    sides_[e].prev = last;
    sides_[e].next = first;
    sides_[last].next = sides_[first].prev = e;
}

void lineage_rings::ring_remove(uint32_t* head, uint32_t e) {
    const uint32_t next = sides_[e].next, prev = sides_[e].prev;
    sides_[prev].next = next;
    sides_[next].prev = prev;
    if (*head == e) *head = next == e ? kNil : next;
}

// From the one ring or the other: only the head tells them apart.
void lineage_rings::leave_orphans(uint32_t e) { ring_remove(e == aside_ ? &aside_ : &orphans_, e); }

void lineage_rings::set_first_orphan_aside() {
    const uint32_t e = orphans_;
    ring_remove(&orphans_, e);
    ring_add(&aside_, e);
}

void lineage_rings::make_first_orphan(uint32_t e) {
    leave_orphans(e);
    ring_add(&orphans_, e);
    orphans_ = e;
}

void lineage_rings::leave_ring(uint32_t e) {
    if (!has_parent(e)) return;
    if (is_orphan(e)) {
        leave_orphans(e);
        --n_orphans_;
    } else {
        record_side& parent = sides_[records_[e].parent];
        ring_remove(&parent.first_child, e);
        --parent.n_children;
    }
    records_[e].parent = kNil;
}

void lineage_rings::link(uint32_t e, uint32_t parent) {
    if (records_[e].parent == parent && parent_lives(e)) return;
    leave_ring(e);
    records_[e].parent = parent;
    records_[e].parent_stamp = records_[parent].stamp;
    ring_add(&sides_[parent].first_child, e);
    ++sides_[parent].n_children;
}

uint32_t lineage_rings::unlink(uint32_t e) {
    leave_ring(e);
    const uint32_t children = sides_[e].first_child;
    const uint32_t n = sides_[e].n_children;
    ++records_[e].stamp;  // every link to e is stale from here on
    sides_[e].first_child = kNil;
    sides_[e].n_children = 0;
    if (children == kNil) return 0;
    if (orphans_ == kNil) {
        orphans_ = children;
    } else {  // two rings into one
        const uint32_t last_orphan = sides_[orphans_].prev, last_child = sides_[children].prev;
        sides_[last_orphan].next = children;
        sides_[children].prev = last_orphan;
        sides_[last_child].next = orphans_;
        sides_[orphans_].prev = last_child;
    }
    n_orphans_ += n;
    return n;
}

uint32_t lineage_rings::next_sibling(uint32_t e) const {
    if (!has_parent(e) || is_orphan(e)) return kNil;
    const uint32_t next = sides_[e].next;
    return next == sides_[records_[e].parent].first_child ? kNil : next;
}

}  // namespace kvo

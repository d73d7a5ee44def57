// Who hangs on whom: parent links, and the children of each entry as a ring. When a parent leaves,
// its whole ring becomes part of the ring of orphans in constant time. A link is good while the
// parent's stamp is the one it was made with; unlinking a parent changes its stamp. The links live
// in the records of the index. No allocation. Not thread-safe.
#pragma once

#include <cstdint>

#include "index/record.hpp"

namespace kvo {

class lineage_rings {
public:
    lineage_rings(record* records, record_side* sides) : records_(records), sides_(sides) {}

    void start(uint32_t e);
    // Not to itself.
    void link(uint32_t e, uint32_t parent);
    // e goes: out of its ring, its children become orphans. Returns how many.
    uint32_t unlink(uint32_t e);

    bool has_parent(uint32_t e) const { return records_[e].parent != kNil; }
    bool is_orphan(uint32_t e) const { return has_parent(e) && !parent_lives(e); }
    uint32_t parent(uint32_t e) const {
        return has_parent(e) && parent_lives(e) ? records_[e].parent : kNil;
    }
    uint32_t first_child(uint32_t e) const { return sides_[e].first_child; }
    // kNil after the last.
    uint32_t next_sibling(uint32_t e) const;

    uint32_t first_orphan() const { return orphans_; }
    uint32_t n_orphans() const { return n_orphans_; }
    // The first orphan is pinned: out of the way until back_from_pins() is told of it.
    void set_first_orphan_aside();
    bool any_aside() const { return aside_ != kNil; }
    void back_from_pins(uint32_t e) {
        if (is_orphan(e)) make_first_orphan(e);
    }

private:
    bool parent_lives(uint32_t e) const {
        return records_[records_[e].parent].stamp == records_[e].parent_stamp;
    }
    void ring_add(uint32_t* head, uint32_t e);
    void ring_remove(uint32_t* head, uint32_t e);
    void leave_orphans(uint32_t e);
    void make_first_orphan(uint32_t e);
    void leave_ring(uint32_t e);

    record* records_;
    record_side* sides_;
    uint32_t orphans_ = kNil;
    uint32_t aside_ = kNil;  // orphans found pinned when a victim was looked for
    uint32_t n_orphans_ = 0;
};

}  // namespace kvo

// ARC, the paper's (Megiddo and Modha, FAST 2003, figure 4), with a real-valued target p. T1: seen
// once, T2: seen more often, B1 and B2: their ghosts. Pinned entries count in |T1| and |T2| but are
// in no victim list; when the list that REPLACE wants has only pinned ones, the other gives. What
// every match and release does is inline, for callers that know the type. Not thread-safe.
#pragma once

#include "base/big_vector.hpp"
#include "index/ghosts.hpp"
#include "index/policy.hpp"

namespace kvo {

class arc_policy : public policy {
public:
    arc_policy(uint32_t max_entries, order_nodes nodes);
    static uint64_t bytes_for(uint32_t max_entries) {
        return uint64_t{max_entries} * sizeof(uint64_t);
    }
    static uint64_t ghost_bytes_for(uint32_t max_entries);

    void set_capacity(uint32_t capacity) final;
    admission admit(uint64_t ghost_key, bool full) final;
    entry_id victim(const admission& a) final;
    void refuse(const admission& a) final;
    void insert(entry_id e, const admission& a) final;
    void remove(entry_id e) final;
    entry_id oldest() final;
    entry_id likely_victim() const final;
    void prefetch_ghost(uint64_t ghost_key) const final { ghosts_.prefetch(ghost_key); }

    // Case I: to the recent end of T2.
    void hit(entry_id e) final {
        order_node& node = nodes_[raw(e)];
        const bool may_leave = node.may_leave();
        take_out(raw(e));
        promote(node);
        if (may_leave) victims(node.list).push_newest(raw(e));
    }
    void pin(entry_id e) final {
        take_out(raw(e));
        ++nodes_[raw(e)].pins;
    }
    void unpin(entry_id e, entry_id ancestor) final {
        order_node& node = nodes_[raw(e)];
        if (--node.pins > 0) return;
        if (ancestor != kNoEntry && nodes_[raw(ancestor)].may_leave() &&
            nodes_[raw(ancestor)].list == node.list) {
            victims(node.list).insert_older_than(raw(ancestor), raw(e));
        } else {
            victims(node.list).push_newest(raw(e));
        }
    }
    // For batches: the list of victims to which `which` belongs, and a hit but for the place in it.
    order_list<order_nodes>& victims(uint8_t which) { return which == t1 ? order_t1_ : order_t2_; }
    void promote(order_node& node) {
        if (node.list != t1) return;
        --n_t1_;
        ++n_t2_;
        node.list = t2;
    }

    struct sizes {
        uint32_t t1, t2, b1, b2;
        double p;
    };
    sizes read_sizes() const;

private:
    enum list : uint8_t { absent = 0, t1 = 1, t2 = 2 };

    uint32_t& count(uint8_t which) { return which == t1 ? n_t1_ : n_t2_; }
    void take_out(uint32_t i) {  // of its victims, if it is among them
        if (nodes_[i].may_leave()) victims(nodes_[i].list).remove(i);
    }
    entry_id leave(uint8_t which, bool ghost);
    void trim_ghosts();

    uint32_t capacity_;
    double p_ = 0;         // target size of T1
    double p_before_ = 0;  // for refuse()
    order_nodes nodes_;
    big_vector<uint64_t> ghost_key_;  // digest of each resident entry
    order_list<order_nodes> order_t1_, order_t2_;
    uint32_t n_t1_ = 0, n_t2_ = 0;  // pinned ones included
    ghost_lists ghosts_;
};

}  // namespace kvo

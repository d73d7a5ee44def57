// Least recently used: one list of victims; pinned entries are in none. What every match and
// release does is inline, for callers that know the type. Not thread-safe (cache lock).
#pragma once

#include "index/policy.hpp"

namespace kvo {

class lru_policy : public policy {
public:
    lru_policy(uint32_t, order_nodes nodes) : nodes_(nodes), order_(nodes) {}

    void set_capacity(uint32_t) final {}
    admission admit(uint64_t ghost_key, bool) final { return {ghost_key, 0, 0}; }
    entry_id victim(const admission&) final { return oldest(); }
    void refuse(const admission&) final {}
    void insert(entry_id e, const admission&) final {
        nodes_[raw(e)].list = kResident;
        nodes_[raw(e)].pins = 1;
    }
    entry_id likely_victim() const final { return entry_id{order_.oldest()}; }

    // A pinned entry has no place; unpin gives it one.
    void hit(entry_id e) final {
        if (!nodes_[raw(e)].may_leave()) return;
        order_.remove(raw(e));
        order_.push_newest(raw(e));
    }
    void remove(entry_id e) final {
        take_out(raw(e));
        nodes_[raw(e)].list = 0;
    }
    void pin(entry_id e) final {
        take_out(raw(e));
        ++nodes_[raw(e)].pins;
    }
    void unpin(entry_id e, entry_id ancestor) final {
        if (--nodes_[raw(e)].pins > 0) return;
        if (ancestor != kNoEntry && nodes_[raw(ancestor)].may_leave()) {
            order_.insert_older_than(raw(ancestor), raw(e));
        } else {
            order_.push_newest(raw(e));
        }
    }
    entry_id oldest() final {
        const entry_id e{order_.oldest()};
        if (e != kNoEntry) remove(e);
        return e;
    }

    // For batches: the list of victims to which `list` belongs, and a hit but for the place in it.
    order_list<order_nodes>& victims(uint8_t) { return order_; }
    void promote(order_node&) {}

private:
    static constexpr uint8_t kResident = 1;

    void take_out(uint32_t i) {
        if (nodes_[i].may_leave()) order_.remove(i);
    }

    order_nodes nodes_;
    order_list<order_nodes> order_;
};

}  // namespace kvo

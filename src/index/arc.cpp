#include "index/arc.hpp"

#include <algorithm>

namespace kvo {

namespace {

// One more while a victim is a ghost already and the lists are not trimmed.
constexpr uint32_t ghosts_for(uint32_t max_entries) { return max_entries + 1; }

}  // namespace

arc_policy::arc_policy(uint32_t max_entries, order_nodes nodes)
    : capacity_(max_entries),
      nodes_(nodes),
      ghost_key_(max_entries, 0),
      order_t1_(nodes),
      order_t2_(nodes),
      ghosts_(ghosts_for(max_entries)) {}

uint64_t arc_policy::ghost_bytes_for(uint32_t max_entries) {
    return ghost_lists::bytes_for(ghosts_for(max_entries));
}

void arc_policy::set_capacity(uint32_t capacity) {
    capacity_ = capacity;
    p_ = std::min(p_, static_cast<double>(capacity));
    trim_ghosts();
}

// Cases II and III adapt p; the ghost stays until insert(), so that refuse() need only restore p.
admission arc_policy::admit(uint64_t ghost_key, bool) {
    p_before_ = p_;
    const auto ghost = ghosts_.find(ghost_key);
    const double b1 = ghosts_.size(ghost_lists::b1), b2 = ghosts_.size(ghost_lists::b2);
    if (ghost == ghost_lists::b1) {
        p_ = std::min(static_cast<double>(capacity_), p_ + std::max(1.0, b2 / b1));
    } else if (ghost == ghost_lists::b2) {
        p_ = std::max(0.0, p_ - std::max(1.0, b1 / b2));
    }
    return {ghost_key, static_cast<uint8_t>(ghost == ghost_lists::none ? t1 : t2), ghost};
}

entry_id arc_policy::leave(uint8_t which, bool ghost) {
    const uint32_t i = victims(which).oldest();
    take_out(i);
    --count(which);
    nodes_[i].list = absent;
    if (ghost) ghosts_.add(ghost_key_[i], which == t1 ? ghost_lists::b1 : ghost_lists::b2);
    if (!victims(which).empty()) __builtin_prefetch(&ghost_key_[victims(which).oldest()]);
    return entry_id{i};
}

// REPLACE. The paper drops the oldest ghost first or, when T1 alone fills L1, lets T1's oldest
// leave without a ghost; trim_ghosts() after the insert comes to the same: the ghost added here is
// then the one too many.
entry_id arc_policy::victim(const admission& a) {
    const bool tie = a.flags == ghost_lists::b2 && static_cast<double>(n_t1_) == p_;
    const bool from_t1 = n_t1_ > 0 && (tie || static_cast<double>(n_t1_) > p_);
    const uint8_t first = from_t1 ? t1 : t2, second = from_t1 ? t2 : t1;
    if (!victims(first).empty()) return leave(first, true);
    if (!victims(second).empty()) return leave(second, true);
    return kNoEntry;
}

entry_id arc_policy::likely_victim() const {
    const bool from_t1 = static_cast<double>(n_t1_) > p_ && !order_t1_.empty();
    return entry_id{from_t1 || order_t2_.empty() ? order_t1_.oldest() : order_t2_.oldest()};
}

void arc_policy::refuse(const admission&) { p_ = p_before_; }

void arc_policy::insert(entry_id e, const admission& a) {
    const uint32_t i = raw(e);
    if (a.flags != ghost_lists::none) ghosts_.remove(a.ghost_key);
    nodes_[i].list = a.list;
    nodes_[i].pins = 1;
    ghost_key_[i] = a.ghost_key;
    ++count(a.list);
    trim_ghosts();
}

// |T1| + |B1| <= c and |T1| + |T2| + |B1| + |B2| <= 2c.
void arc_policy::trim_ghosts() {
    while (ghosts_.size(ghost_lists::b1) > 0 && n_t1_ + ghosts_.size(ghost_lists::b1) > capacity_) {
        ghosts_.drop_oldest(ghost_lists::b1);
    }
    const auto total = [this] {
        return uint64_t{n_t1_} + n_t2_ + ghosts_.size(ghost_lists::b1) +
               ghosts_.size(ghost_lists::b2);
    };
    while (ghosts_.size(ghost_lists::b2) > 0 && total() > uint64_t{capacity_} * 2) {
        ghosts_.drop_oldest(ghost_lists::b2);
    }
}

void arc_policy::remove(entry_id e) {
    const uint32_t i = raw(e);
    if (nodes_[i].list == absent) return;
    take_out(i);
    --count(nodes_[i].list);
    nodes_[i].list = absent;
}

entry_id arc_policy::oldest() {
    const bool from_t1 =
        !order_t1_.empty() && (static_cast<double>(n_t1_) > p_ || order_t2_.empty());
    if (from_t1) return leave(t1, false);
    return order_t2_.empty() ? kNoEntry : leave(t2, false);
}

arc_policy::sizes arc_policy::read_sizes() const {
    return {n_t1_, n_t2_, ghosts_.size(ghost_lists::b1), ghosts_.size(ghost_lists::b2), p_};
}

}  // namespace kvo

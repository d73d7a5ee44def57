#include "index/arc.hpp"

#include <algorithm>

namespace kvo {

arc_policy::arc_policy(uint32_t max_entries)
    : capacity_(max_entries),
      links_(max_entries),
      where_(max_entries, absent),
      listed_(max_entries, 0),
      ghost_key_(max_entries, 0),
      order_t1_(links_),
      order_t2_(links_),
      ghosts_(max_entries + 1) {}  // one more while a victim is a ghost already and the list not trimmed

uint64_t arc_policy::bytes_for(uint32_t max_entries) {
    return uint64_t{max_entries} * (8 + 2 + 8) + ghost_lists::bytes_for(max_entries + 1);
}

void arc_policy::set_capacity(uint32_t capacity) {
    capacity_ = capacity;
    p_ = std::min(p_, static_cast<double>(capacity));
    trim_ghosts();
}

void arc_policy::take_out(uint32_t i) {
    if (listed_[i] == 0) return;
    order(where_[i]).remove(i);
    listed_[i] = 0;
}

// Case I: to the recent end of T2.
void arc_policy::hit(entry_id e) {
    const uint32_t i = raw(e);
    const bool was_listed = listed_[i] != 0;
    take_out(i);
    if (where_[i] == t1) {
        --n_t1_;
        ++n_t2_;
        where_[i] = t2;
    }
    if (was_listed) {
        order_t2_.push_newest(i);
        listed_[i] = 1;
    }
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

entry_id arc_policy::leave(uint8_t where, bool ghost) {
    const uint32_t i = order(where).oldest();
    take_out(i);
    --count(where);
    where_[i] = absent;
    if (ghost) ghosts_.add(ghost_key_[i], where == t1 ? ghost_lists::b1 : ghost_lists::b2);
    return entry_id{i};
}

// REPLACE. The paper drops the oldest ghost first or, when T1 alone fills L1, lets T1's oldest leave without
// a ghost; trim_ghosts() after the insert comes to the same: the ghost added here is then the one too many.
entry_id arc_policy::victim(const admission& a) {
    const bool tie = a.flags == ghost_lists::b2 && static_cast<double>(n_t1_) == p_;
    const bool from_t1 = n_t1_ > 0 && (tie || static_cast<double>(n_t1_) > p_);
    const uint8_t first = from_t1 ? t1 : t2, second = from_t1 ? t2 : t1;
    if (!order(first).empty()) return leave(first, true);
    if (!order(second).empty()) return leave(second, true);
    return kNoEntry;
}

void arc_policy::refuse(const admission&) { p_ = p_before_; }

void arc_policy::insert(entry_id e, const admission& a) {
    const uint32_t i = raw(e);
    ghosts_.remove(a.ghost_key);
    where_[i] = a.list;
    listed_[i] = 0;
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
        return uint64_t{n_t1_} + n_t2_ + ghosts_.size(ghost_lists::b1) + ghosts_.size(ghost_lists::b2);
    };
    while (ghosts_.size(ghost_lists::b2) > 0 && total() > uint64_t{capacity_} * 2) {
        ghosts_.drop_oldest(ghost_lists::b2);
    }
}

void arc_policy::remove(entry_id e) {
    const uint32_t i = raw(e);
    if (where_[i] == absent) return;
    take_out(i);
    --count(where_[i]);
    where_[i] = absent;
}

void arc_policy::pin(entry_id e) { take_out(raw(e)); }

void arc_policy::unpin(entry_id e, entry_id parent) {
    const uint32_t i = raw(e);
    if (parent != kNoEntry && listed_[raw(parent)] != 0 && where_[raw(parent)] == where_[i]) {
        order(where_[i]).insert_older_than(raw(parent), i);
    } else {
        order(where_[i]).push_newest(i);
    }
    listed_[i] = 1;
}

entry_id arc_policy::oldest() {
    const bool from_t1 = !order_t1_.empty() && (static_cast<double>(n_t1_) > p_ || order_t2_.empty());
    if (from_t1) return leave(t1, false);
    return order_t2_.empty() ? kNoEntry : leave(t2, false);
}

void arc_policy::clear() {
    order_t1_.clear();
    order_t2_.clear();
    n_t1_ = n_t2_ = 0;
    p_ = 0;
    std::fill(where_.begin(), where_.end(), uint8_t{absent});
    std::fill(listed_.begin(), listed_.end(), uint8_t{0});
    ghosts_.clear();
}

arc_policy::sizes arc_policy::read_sizes() const {
    return {n_t1_, n_t2_, ghosts_.size(ghost_lists::b1), ghosts_.size(ghost_lists::b2), p_};
}

}  // namespace kvo

#include "index/lru.hpp"

#include <algorithm>

namespace kvo {

lru_policy::lru_policy(uint32_t max_entries)
    : links_(max_entries), listed_(max_entries, 0), order_(links_) {}

uint64_t lru_policy::bytes_for(uint32_t max_entries) { return uint64_t{max_entries} * 9; }

void lru_policy::take_out(uint32_t i) {
    if (listed_[i] == 0) return;
    order_.remove(i);
    listed_[i] = 0;
}

// A pinned entry has no place; unpin gives it one.
void lru_policy::hit(entry_id e) {
    if (listed_[raw(e)] == 0) return;
    order_.remove(raw(e));
    order_.push_newest(raw(e));
}

admission lru_policy::admit(uint64_t ghost_key, bool) { return {ghost_key, 0, 0}; }

entry_id lru_policy::victim(const admission&) { return oldest(); }

entry_id lru_policy::oldest() {
    if (order_.empty()) return kNoEntry;
    const uint32_t i = order_.oldest();
    take_out(i);
    return entry_id{i};
}

void lru_policy::remove(entry_id e) { take_out(raw(e)); }
void lru_policy::pin(entry_id e) { take_out(raw(e)); }

void lru_policy::unpin(entry_id e, entry_id parent) {
    if (parent != kNoEntry && listed_[raw(parent)] != 0) {
        order_.insert_older_than(raw(parent), raw(e));
    } else {
        order_.push_newest(raw(e));
    }
    listed_[raw(e)] = 1;
}

void lru_policy::clear() {
    order_.clear();
    std::fill(listed_.begin(), listed_.end(), uint8_t{0});
}

}  // namespace kvo

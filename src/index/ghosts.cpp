#include "index/ghosts.hpp"

namespace kvo {

ghost_lists::ghost_lists(uint32_t capacity)
    : nodes_(capacity),
      is_b2_(capacity),
      table_(capacity),
      order_b1_(nodes_.data()),
      order_b2_(nodes_.data()) {
    for (uint32_t i = capacity; i-- > 0;) {
        nodes_[i].newer = free_;
        free_ = i;
    }
}

uint64_t ghost_lists::bytes_for(uint32_t capacity) {
    return uint64_t{capacity} * sizeof(node) + capacity / 8 + 8 + key_table::bytes_for(capacity);
}

ghost_lists::list ghost_lists::find(uint64_t digest) const {
    const uint32_t i = node_of(digest);
    return i == kNil ? none : list_of(i);
}

void ghost_lists::release(uint32_t i) {
    const list which = list_of(i);
    table_.erase(nodes_[i].digest, i);
    order(which).remove(i);
    --count(which);
    nodes_[i].newer = free_;
    free_ = i;
}

void ghost_lists::remove(uint64_t digest) {
    const uint32_t i = node_of(digest);
    if (i != kNil) release(i);
}

// The next to be dropped is fetched ahead in two steps: its node with this drop, its place in the
// table with the one before it.
void ghost_lists::drop_oldest(list which) {
    if (order(which).empty()) return;
    release(order(which).oldest());
    const uint32_t next = order(which).oldest();
    if (next == kNil) return;
    table_.prefetch(nodes_[next].digest);
    if (nodes_[next].newer != kNil) __builtin_prefetch(&nodes_[nodes_[next].newer], 1);
}

void ghost_lists::add(uint64_t digest, list which) {
    if (nodes_.empty()) return;
    remove(digest);
    if (free_ == kNil) {
        const list other = which == b1 ? b2 : b1;
        drop_oldest(count(other) > 0 ? other : which);
    }
    const uint32_t i = free_;
    free_ = nodes_[i].newer;
    nodes_[i].digest = digest;
    is_b2_[i] = which == b2;
    order(which).push_newest(i);
    ++count(which);
    table_.insert(digest, i);
}

}  // namespace kvo

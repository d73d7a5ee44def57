#include "index/ghosts.hpp"

#include <algorithm>

namespace kvo {

namespace {
uint64_t table_size(uint64_t capacity) { return capacity * 2 + 8; }
}  // namespace

ghost_lists::ghost_lists(uint32_t capacity)
    : digests_(capacity),
      in_(capacity, none),
      table_(table_size(capacity), kNil),
      links_(capacity),
      order_b1_(links_),
      order_b2_(links_) {
    free_.reserve(capacity);
    clear();
}

uint64_t ghost_lists::bytes_for(uint32_t capacity) {
    return uint64_t{capacity} * (8 + 1 + 4 + 8) + table_size(capacity) * 4;
}

void ghost_lists::clear() {
    std::fill(table_.begin(), table_.end(), kNil);
    std::fill(in_.begin(), in_.end(), none);
    free_.clear();
    for (uint32_t i = static_cast<uint32_t>(in_.size()); i-- > 0;) free_.push_back(i);
    order_b1_.clear();
    order_b2_.clear();
    n_b1_ = n_b2_ = 0;
}

// Multiply-shift onto a table of any size (Lemire 2016); the digest is uniform already.
uint32_t ghost_lists::home(uint64_t digest) const {
    return static_cast<uint32_t>(((digest >> 32) * table_.size()) >> 32);
}

uint32_t ghost_lists::place_of(uint64_t digest) const {
    const auto n = static_cast<uint32_t>(table_.size());
    for (uint32_t p = home(digest); table_[p] != kNil; p = p + 1 == n ? 0 : p + 1) {
        if (digests_[table_[p]] == digest) return p;
    }
    return kNil;
}

ghost_lists::list ghost_lists::find(uint64_t digest) const {
    const uint32_t place = place_of(digest);
    return place == kNil ? none : static_cast<list>(in_[table_[place]]);
}

// Backward shift: entries behind the hole move up, so that no tombstones pile up.
void ghost_lists::erase_place(uint32_t hole) {
    const auto n = static_cast<uint32_t>(table_.size());
    for (uint32_t p = hole;;) {
        p = p + 1 == n ? 0 : p + 1;
        if (table_[p] == kNil) break;
        const uint32_t wanted = home(digests_[table_[p]]);
        const uint32_t from_home = p >= wanted ? p - wanted : p + n - wanted;
        const uint32_t from_hole = p >= hole ? p - hole : p + n - hole;
        if (from_home >= from_hole) {
            table_[hole] = table_[p];
            hole = p;
        }
    }
    table_[hole] = kNil;
}

void ghost_lists::release(uint32_t node) {
    const auto which = static_cast<list>(in_[node]);
    erase_place(place_of(digests_[node]));
    lists(which).remove(node);
    --count(which);
    in_[node] = none;
    free_.push_back(node);
}

void ghost_lists::remove(uint64_t digest) {
    const uint32_t place = place_of(digest);
    if (place != kNil) release(table_[place]);
}

void ghost_lists::drop_oldest(list which) {
    if (!lists(which).empty()) release(lists(which).oldest());
}

void ghost_lists::add(uint64_t digest, list which) {
    if (in_.empty()) return;
    remove(digest);
    if (free_.empty()) drop_oldest(count(which == b1 ? b2 : b1) > 0 ? (which == b1 ? b2 : b1) : which);
    const uint32_t node = free_.back();
    free_.pop_back();
    digests_[node] = digest;
    in_[node] = which;
    lists(which).push_newest(node);
    ++count(which);
    const auto n = static_cast<uint32_t>(table_.size());
    uint32_t p = home(digest);
    while (table_[p] != kNil) p = p + 1 == n ? 0 : p + 1;
    table_[p] = node;
}

}  // namespace kvo

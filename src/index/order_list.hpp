// The order of victims: doubly linked lists of numbers. The nodes belong to someone else, who may
// keep them inside larger records, so that what one access touches lies in one cache line; any
// number is in at most one list at a time. Front is the oldest. Constant time, no allocation. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvo {

constexpr uint32_t kNil = UINT32_MAX;

// What a policy keeps of one entry.
struct order_node {
    uint32_t older = kNil, newer = kNil;
    uint32_t pins = 0;
    uint8_t list = 0;  // the policy's own; 0 when the entry is not resident

    bool may_leave() const { return pins == 0 && list != 0; }  // is among the victims of its list
};

// Nodes at equal distances of 2^shift bytes, found by number.
class order_nodes {
public:
    order_nodes(order_node* first, unsigned shift)
        : first_(reinterpret_cast<std::byte*>(first)), shift_(shift) {}
    order_node& operator[](uint32_t i) const {
        return *reinterpret_cast<order_node*>(first_ + (size_t{i} << shift_));
    }

private:
    std::byte* first_;
    unsigned shift_;
};

// Nodes: anything that gives a struct with the links `older` and `newer` for a number.
template <typename Nodes>
class order_list {
public:
    explicit order_list(Nodes nodes) : nodes_(nodes) {}

    bool empty() const { return oldest_ == kNil; }
    uint32_t oldest() const { return oldest_; }

    void push_newest(uint32_t i) {
        nodes_[i].older = newest_;
        nodes_[i].newer = kNil;
        (newest_ == kNil ? oldest_ : nodes_[newest_].newer) = i;
        newest_ = i;
    }
    // i leaves just before `next` would.
    void insert_older_than(uint32_t next, uint32_t i) {
        const uint32_t before = nodes_[next].older;
        nodes_[i].older = before;
        nodes_[i].newer = next;
        nodes_[next].older = i;
        (before == kNil ? oldest_ : nodes_[before].newer) = i;
    }
    void remove(uint32_t i) { remove_run(i, i); }

    // Several that follow each other, from `newest` to `oldest`, as one.
    void remove_run(uint32_t newest, uint32_t oldest) {
        const uint32_t older = nodes_[oldest].older, newer = nodes_[newest].newer;
        (older == kNil ? oldest_ : nodes_[older].newer) = newer;
        (newer == kNil ? newest_ : nodes_[newer].older) = older;
    }
    // Numbers were chained on behind one of this list, the last of them is `oldest`; `older` is
    // what came behind that one before.
    void close_run(uint32_t oldest, uint32_t older) {
        nodes_[oldest].older = older;
        (older == kNil ? oldest_ : nodes_[older].newer) = oldest;
    }

private:
    Nodes nodes_;
    uint32_t oldest_ = kNil, newest_ = kNil;
};

}  // namespace kvo

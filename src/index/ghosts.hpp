// Remembered keys of entries that left: two lists (B1, B2) of 64-bit digests over one fixed pool,
// found by digest in constant time. Two keys with one digest look like one: that can cost a hit,
// never a wrong block. No allocation after construction. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/big_vector.hpp"
#include "index/key_table.hpp"
#include "index/order_list.hpp"

namespace kvo {

class ghost_lists {
public:
    enum list : uint8_t { none = 0, b1 = 1, b2 = 2 };

    explicit ghost_lists(uint32_t capacity);
    static uint64_t bytes_for(uint32_t capacity);

    list find(uint64_t digest) const;
    uint32_t size(list which) const { return which == b1 ? n_b1_ : n_b2_; }
    // Becomes the newest of the list; when the pool is full the oldest of the other list, then of
    // this one, makes room. A digest that is remembered already moves.
    void add(uint64_t digest, list which);
    void remove(uint64_t digest);
    void drop_oldest(list which);
    void prefetch(uint64_t digest) const { table_.prefetch(digest); }

private:
    struct node {
        uint64_t digest = 0;
        uint32_t older = kNil, newer = kNil;  // of a free node: newer is the next free one
    };
    using node_list = order_list<node*>;

    uint32_t node_of(uint64_t digest) const {
        return table_.find(digest, [&](uint32_t i) { return nodes_[i].digest == digest; });
    }
    void release(uint32_t i);
    list list_of(uint32_t i) const { return is_b2_[i] ? b2 : b1; }
    node_list& order(list which) { return which == b1 ? order_b1_ : order_b2_; }
    uint32_t& count(list which) { return which == b1 ? n_b1_ : n_b2_; }

    big_vector<node> nodes_;
    std::vector<bool> is_b2_;
    key_table table_;
    uint32_t free_ = kNil;
    node_list order_b1_, order_b2_;
    uint32_t n_b1_ = 0, n_b2_ = 0;
};

}  // namespace kvo

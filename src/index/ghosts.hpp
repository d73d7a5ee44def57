// Remembered keys of entries that left: two lists (B1, B2) of 64-bit digests over one fixed pool, found by
// digest in constant time. Two keys with one digest look like one: that can cost a hit, never a wrong
// block. No allocation after construction. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "index/order_list.hpp"

namespace kvo {

class ghost_lists {
public:
    enum list : uint8_t { none = 0, b1 = 1, b2 = 2 };

    explicit ghost_lists(uint32_t capacity);
    static uint64_t bytes_for(uint32_t capacity);

    list find(uint64_t digest) const;
    uint32_t size(list which) const { return which == b1 ? n_b1_ : n_b2_; }
    // Becomes the newest of the list; when the pool is full the oldest of the other list, then of this one,
    // makes room. A digest that is remembered already moves.
    void add(uint64_t digest, list which);
    void remove(uint64_t digest);
    void drop_oldest(list which);
    void clear();

private:
    uint32_t home(uint64_t digest) const;
    uint32_t place_of(uint64_t digest) const;  // in table_, kNil if absent
    void erase_place(uint32_t place);
    void release(uint32_t node);
    order_list& lists(list which) { return which == b1 ? order_b1_ : order_b2_; }
    uint32_t& count(list which) { return which == b1 ? n_b1_ : n_b2_; }

    std::vector<uint64_t> digests_;
    std::vector<uint8_t> in_;       // list of each node
    std::vector<uint32_t> table_;   // open addressing: node or kNil
    std::vector<uint32_t> free_;
    order_links links_;
    order_list order_b1_, order_b2_;
    uint32_t n_b1_ = 0, n_b2_ = 0;
};

}  // namespace kvo

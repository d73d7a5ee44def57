// The order of victims: a doubly linked list of numbers over arrays that several lists of one policy share.
// Front is the oldest. Constant time, no allocation. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace kvo {

constexpr uint32_t kNil = UINT32_MAX;

// Neighbours of each number; a number is in at most one list at a time.
struct order_links {
    explicit order_links(uint32_t n) : older(n, kNil), newer(n, kNil) {}
    std::vector<uint32_t> older, newer;
};

class order_list {
public:
    explicit order_list(order_links& links) : links_(&links) {}

    bool empty() const { return oldest_ == kNil; }
    uint32_t oldest() const { return oldest_; }

    void push_newest(uint32_t i) {
        links_->older[i] = newest_;
        links_->newer[i] = kNil;
        (newest_ == kNil ? oldest_ : links_->newer[newest_]) = i;
        newest_ = i;
    }
    // i leaves just before `next` would.
    void insert_older_than(uint32_t next, uint32_t i) {
        const uint32_t before = links_->older[next];
        links_->older[i] = before;
        links_->newer[i] = next;
        links_->older[next] = i;
        (before == kNil ? oldest_ : links_->newer[before]) = i;
    }
    void remove(uint32_t i) {
        const uint32_t older = links_->older[i], newer = links_->newer[i];
        (older == kNil ? oldest_ : links_->newer[older]) = newer;
        (newer == kNil ? newest_ : links_->older[newer]) = older;
    }
    void clear() { oldest_ = newest_ = kNil; }

private:
    order_links* links_;
    uint32_t oldest_ = kNil, newest_ = kNil;
};

}  // namespace kvo

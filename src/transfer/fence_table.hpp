// Which pieces are in flight on which device block: a list per (group, device block), keyed by the physical
// block. Under the cache lock; constant time; no allocation after construction.
#pragma once

#include <span>
#include <vector>

#include "transfer/records.hpp"

namespace kvo {

class fence_table {
public:
    fence_table(std::span<const group_layout> groups, std::vector<piece_record>& pieces)
        : pieces_(pieces) {
        for (const auto& g : groups) heads_.emplace_back(g.n_device_blocks, kNone);
    }
    uint32_t first(uint32_t group, uint32_t device_block) const { return heads_[group][device_block]; }
    uint32_t n_device_blocks(uint32_t group) const {
        return static_cast<uint32_t>(heads_[group].size());
    }
    uint64_t n_entries() const { return n_; }

    void enter(uint32_t p) {
        piece_record& piece = pieces_[p];
        uint32_t& head = heads_[piece.group][piece.device_block];
        piece.fence_prev = kNone;
        piece.fence_next = head;
        if (head != kNone) pieces_[head].fence_prev = p;
        head = p;
        ++n_;
    }
    void leave(uint32_t p) {
        const piece_record& piece = pieces_[p];
        if (piece.fence_prev == kNone) {
            heads_[piece.group][piece.device_block] = piece.fence_next;
        } else {
            pieces_[piece.fence_prev].fence_next = piece.fence_next;
        }
        if (piece.fence_next != kNone) pieces_[piece.fence_next].fence_prev = piece.fence_prev;
        --n_;
    }

private:
    std::vector<piece_record>& pieces_;
    std::vector<std::vector<uint32_t>> heads_;
    uint64_t n_ = 0;
};

}  // namespace kvo

// What the index keeps of one block: a line with all that a look-up, a pin and an unpin touch, and
// half a line with what is needed only when a block comes or goes. Plain data, owned by
// block_index.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/ids.hpp"
#include "index/block_index.hpp"
#include "index/order_list.hpp"

namespace kvo {

struct alignas(64) record {
    kvo_key_t key{};
    order_node order;           // place in the policy's lists
    uint32_t parent = kNil;     // of a free record: the next free one
    uint32_t parent_stamp = 0;  // the parent's stamp when the link was made
    uint32_t stamp = 0;         // another one after each life of this record
    uint16_t ns = 0;
    entry_state state = entry_state::free;
    bool reused = false;

    bool is(ns_id in, const kvo_key_t& wanted) const {
        uint64_t a[4], b[4];
        std::memcpy(a, key.bytes, sizeof a);
        std::memcpy(b, wanted.bytes, sizeof b);
        return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0 &&
               ns == raw(in);
    }
    bool is_live() const { return state == entry_state::writing || state == entry_state::ready; }
};
static_assert(sizeof(record) == 64);
constexpr unsigned kRecordShift = 6;

struct alignas(32) record_side {
    static constexpr uint32_t kSlots = 2;  // of further groups: in an array of their own

    uint32_t first_child = kNil;
    uint32_t n_children = 0;
    uint32_t next = kNil, prev = kNil;  // in the ring of siblings or of orphans
    uint64_t stored_at_ns = 0;
    slot_id slots[kSlots] = {kNoSlot, kNoSlot};
};
static_assert(sizeof(record_side) == 32);

}  // namespace kvo

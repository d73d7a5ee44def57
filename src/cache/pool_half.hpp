// The pool half: host memory and free slots of every group, in slot numbers. Slot s of a group lies
// in chunk s / per_chunk of the group's own pool, so none spans two chunks. Calls marked
// [set-up] are made by one thread at a time without the cache lock, all others with it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/ids.hpp"
#include "cache/budget.hpp"
#include "memory/host_pool.hpp"
#include "memory/slots.hpp"

namespace kvo {

// The slots of the top bit are still being written into an entry that is readable otherwise.
constexpr uint32_t kFillingBit = 1u << 31;
constexpr slot_id filling(slot_id s) noexcept { return slot_id{raw(s) | kFillingBit}; }
constexpr slot_id settled(slot_id s) noexcept { return slot_id{raw(s) & ~kFillingBit}; }
constexpr bool is_present(slot_id s) noexcept { return (raw(s) & kFillingBit) == 0; }
constexpr bool is_filling(slot_id s) noexcept {
    return s != kNoSlot && (raw(s) & kFillingBit) != 0;
}

// A slot that had to be zeroed is free now: whose it was.
struct scrubbed {
    ns_id ns{};
    uint8_t side = 0;
};

class pool_half {
public:
    status create(const budget_plan& plan, const group_table& groups, const kvo_config_t& config);

    uint8_t* address(uint32_t g, slot_id slot) const noexcept {
        const pool& p = pools_[g];
        const uint32_t s = raw(settled(slot));
        return p.memory->base() + (s / per_chunk_) * p.memory->chunk_bytes() +
               (s % per_chunk_) * p.stride;
    }
    uint64_t slot_stride(uint32_t g) const noexcept { return pools_[g].stride; }
    uint64_t touched_bytes() const noexcept;

    uint32_t usable() const noexcept { return usable_; }
    void set_usable(uint32_t n);
    uint32_t n_free() const noexcept;  // blocks: the least over the groups
    uint32_t n_used_at_or_above(uint32_t n) const noexcept;
    // [set-up] Touches memory for the next chunk's worth of blocks, at most up to target; *n: how
    // many blocks have memory now.
    status populate_next(uint32_t target, uint32_t* n);
    // [set-up] Gives back memory of slots at and above n.
    status give_back(uint32_t n);
    uint32_t populated() const noexcept { return populated_; }

    slot_id take(uint32_t g, slot_id near) { return pools_[g].slots->take(near); }
    void give(uint32_t g, slot_id slot) { pools_[g].slots->give(slot); }
    // Free once it is zeroed.
    void give_to_scrub(uint32_t g, slot_id slot, ns_id ns, uint8_t side);
    uint32_t n_to_scrub() const noexcept { return n_to_scrub_; }
    // Zeroes about max_bytes of some slot that waits; true when that was its end.
    bool scrub_some(uint64_t max_bytes, scrubbed* done);
    // Zeroes the rest of one slot of this group; false when none waits.
    bool finish_scrub(uint32_t g, scrubbed* done);

private:
    // Lies in the first bytes of a slot that waits for its zeroes.
    struct scrub_note {
        slot_id next;
        ns_id ns;
        uint32_t side;
    };
    struct pool {
        std::unique_ptr<host_pool> memory;
        std::unique_ptr<slot_map> slots;
        uint64_t stride = 0;
        slot_id to_scrub = kNoSlot;
        uint64_t zeroed_from = 0;  // of the slot to_scrub: its bytes from here on are zero
    };

    std::array<pool, kMaxGroups> pools_;
    uint32_t n_groups_ = 0;
    uint32_t per_chunk_ = 1;
    uint32_t usable_ = 0;     // [lock]
    uint32_t populated_ = 0;  // [set-up]
    uint32_t n_to_scrub_ = 0;
};

}  // namespace kvo

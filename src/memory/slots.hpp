// Which slots of one group are free. A slot is room for one block; slots of a group have one size and none
// spans two pool chunks. Hands out runs where it can: copies of neighbouring slots merge into one.
// Not thread-safe (cache lock). No allocation after create.
#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.hpp"

namespace kvo {

class slot_map {
public:
    static uint64_t bytes_for(uint32_t max_slots);
    explicit slot_map(uint32_t max_slots);  // none usable at first
    ~slot_map();

    // Slots [0, n) are usable from now on. Shrinking: slots >= n are not handed out any more; those in
    // use stay until give() returns them.
    void set_usable(uint32_t n);
    // A free slot, the one after `near` if that is free, else the start of the longest run at hand
    // (constant time, "longest" within the words it looks at). kNoSlot when none is free.
    slot_id take(slot_id near);
    void give(slot_id slot);
    uint32_t n_free() const noexcept;            // usable and free
    uint32_t n_used_at_or_above(uint32_t n) const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace kvo

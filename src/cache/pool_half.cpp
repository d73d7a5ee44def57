#include "cache/pool_half.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/math.hpp"

namespace kvo {

namespace {
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kNoteRoom = 64;  // the least a slot is long
}  // namespace

status pool_half::create(const budget_plan& plan, const group_table& groups,
                         const kvo_config_t& config) {
    n_groups_ = groups.size();
    per_chunk_ = plan.slots.per_chunk;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (uint32_t g = 0; g < n_groups_; ++g) {
        pool& p = pools_[g];
        p.stride = groups[g].slot_stride;
        p.zeroed_from = p.stride;
        host_pool_config c;
        const uint64_t used = p.stride * per_chunk_;
        c.chunk_bytes = align_up(used, used >= kHugePage ? kHugePage : page);
        c.reserve_bytes = c.chunk_bytes * div_up(plan.max_blocks, per_chunk_);
        c.huge_pages = config.huge_pages != 0;
        c.numa_node = config.numa_node;
        c.prefault_threads = config.prefault_threads;
        c.host_share = config.host_share;
        const status s = host_pool::create(c, &p.memory);
        if (s != KVO_OK) return s;
        p.slots = std::make_unique<slot_map>(plan.max_blocks);
    }
    return KVO_OK;
}

uint64_t pool_half::touched_bytes() const noexcept {
    uint64_t sum = 0;
    for (uint32_t g = 0; g < n_groups_; ++g) sum += pools_[g].memory->touched_bytes();
    return sum;
}

void pool_half::set_usable(uint32_t n) {
    usable_ = n;
    for (uint32_t g = 0; g < n_groups_; ++g) pools_[g].slots->set_usable(n);
}

uint32_t pool_half::n_free() const noexcept {
    uint32_t least = UINT32_MAX;
    for (uint32_t g = 0; g < n_groups_; ++g) least = std::min(least, pools_[g].slots->n_free());
    return least;
}

uint32_t pool_half::n_used_at_or_above(uint32_t n) const noexcept {
    uint32_t most = 0;
    for (uint32_t g = 0; g < n_groups_; ++g)
        most = std::max(most, pools_[g].slots->n_used_at_or_above(n));
    return most;
}

status pool_half::populate_next(uint32_t target, uint32_t* n) {
    *n = populated_;
    if (populated_ >= target) return KVO_OK;
    const uint32_t chunk = populated_ / per_chunk_;
    const auto end =
        static_cast<uint32_t>(std::min<uint64_t>(target, (uint64_t{chunk} + 1) * per_chunk_));
    for (uint32_t g = 0; g < n_groups_; ++g) {
        const uint64_t bytes = (end - chunk * per_chunk_) * pools_[g].stride;
        const status s = pools_[g].memory->populate(chunk, bytes);
        if (s != KVO_OK) return s;
    }
    *n = populated_ = end;
    return KVO_OK;
}

status pool_half::give_back(uint32_t n) {
    const uint32_t before = populated_;
    populated_ = std::min(populated_, n);  // first: what fails to be given back is populated anew later
    for (uint32_t g = 0; g < n_groups_; ++g) {
        const uint64_t last = pools_[g].memory->n_chunks();
        for (uint64_t chunk = n / per_chunk_; chunk < last; ++chunk) {
            const uint64_t first_slot = chunk * per_chunk_;
            if (first_slot >= before) break;
            const uint64_t keep = first_slot >= n ? 0 : (n - first_slot) * pools_[g].stride;
            const status s = pools_[g].memory->release(chunk, keep);
            if (s != KVO_OK) return s;
        }
    }
    return KVO_OK;
}

void pool_half::give_to_scrub(uint32_t g, slot_id slot, ns_id ns, uint8_t side) {
    pool& p = pools_[g];
    // The one begun before is begun again later: it lies behind this one.
    const scrub_note note{p.to_scrub, ns, side};
    std::memcpy(address(g, slot), &note, sizeof note);
    p.to_scrub = slot;
    p.zeroed_from = p.stride;
    ++n_to_scrub_;
}

bool pool_half::finish_scrub(uint32_t g, scrubbed* done) {
    pool& p = pools_[g];
    const slot_id slot = p.to_scrub;
    if (slot == kNoSlot) return false;
    uint8_t* at = address(g, slot);
    scrub_note note{};
    std::memcpy(&note, at, sizeof note);
    std::memset(at, 0, p.zeroed_from);
    p.to_scrub = note.next;
    p.zeroed_from = p.stride;
    p.slots->give(slot);
    --n_to_scrub_;
    *done = {note.ns, static_cast<uint8_t>(note.side)};
    return true;
}

bool pool_half::scrub_some(uint64_t max_bytes, scrubbed* done) {
    for (uint32_t g = 0; g < n_groups_; ++g) {
        pool& p = pools_[g];
        if (p.to_scrub == kNoSlot) continue;
        if (p.zeroed_from <= max_bytes + kNoteRoom) return finish_scrub(g, done);
        p.zeroed_from -= max_bytes;  // from the end, so that the note at the beginning stays
        std::memset(address(g, p.to_scrub) + p.zeroed_from, 0, max_bytes);
        return false;
    }
    return false;
}

}  // namespace kvo

// The small interface behind which a replacement policy sits. It orders entries that may leave; the
// index owns the entries. All calls are constant time and allocate nothing. Not thread-safe (cache
// lock).
//
// One access is: hit() for a resident key; for an absent one admit(), then victim() while the index
// says it is full, then insert(). Pinned entries count in their list but are in no victim list, so
// a victim is found in constant time with any number of pinned ones.
#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.hpp"
#include "index/order_list.hpp"
#include "kvoffload/kvo_cache.h"

namespace kvo {

// What a policy decided about an absent key, between admit() and insert().
struct admission {
    uint64_t ghost_key = 0;  // 64-bit digest of namespace and key, for the ghosts
    uint8_t list = 0;        // policy's own: list the entry goes to
    uint8_t flags = 0;       // policy's own
};

class policy {
public:
    virtual ~policy() = default;
    // Full = `capacity` entries resident; ghosts are sized by it. May shrink and grow later.
    virtual void set_capacity(uint32_t capacity) = 0;

    virtual void hit(entry_id e) = 0;
    // A miss for this key, once per access; consults and updates ghosts and target.
    virtual admission admit(uint64_t ghost_key, bool full) = 0;
    // The entry that leaves for this admission, already taken out of its list (and put in a ghost
    // list if the policy remembers it); kNoEntry when every resident entry is pinned.
    virtual entry_id victim(const admission& a) = 0;
    // The admission came to nothing (all pinned): undo what must not stay.
    virtual void refuse(const admission& a) = 0;
    // New entry, pinned once: counted in its list, in no victim list until unpin.
    virtual void insert(entry_id e, const admission& a) = 0;
    // Leaves without a ghost: purge, failed store, orphan, shrink.
    virtual void remove(entry_id e) = 0;

    // Pins count.
    virtual void pin(entry_id e) = 0;
    // With the last pin gone it may leave again. Its place: just behind `ancestor` (next to leave
    // before it) if that is in the same victim list, else most recent. kNoEntry: most recent.
    virtual void unpin(entry_id e, entry_id ancestor) = 0;

    // Any entry that may leave, oldest first, for shrinking without an access. No ghost. kNoEntry:
    // none.
    virtual entry_id oldest() = 0;

    // Which entry victim() would likely give now: a hint for prefetching, nothing changes.
    // kNoEntry: none.
    virtual entry_id likely_victim() const = 0;
    // Prefetches what the policy itself touches when the key is admitted, or remembered on leaving.
    virtual void prefetch_ghost(uint64_t) const {}
};

// A policy for entries 0 to max_entries - 1. The nodes of its lists are the caller's (one for each
// entry, fresh, alive as long as the policy), or, in the second form, its own.
std::unique_ptr<policy> make_policy(kvo_policy_t kind, uint32_t max_entries, order_nodes nodes);
std::unique_ptr<policy> make_policy(kvo_policy_t kind, uint32_t max_entries);

// Beside the nodes: for resident entries, and for keys remembered after they left.
uint64_t policy_bytes(kvo_policy_t kind, uint32_t max_entries);
uint64_t ghost_bytes(kvo_policy_t kind, uint32_t max_entries);
// "lru", "arc"; false when unknown.
bool parse_policy(const char* name, kvo_policy_t* out);

}  // namespace kvo

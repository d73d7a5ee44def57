// The index half: which keys are here, in which slots, who is whose parent, who is pinned, who
// leaves next. It answers in entry ids and slot numbers and never touches block bytes. Not
// thread-safe: every call is made under the cache lock, at most kKeysPerLock keys at a time. No
// allocation after create.
//
// Life of an entry: reserve (writing, pinned once, invisible to find's ready test) -> commit
// (ready) -> pinned and unpinned -> evicted or removed. A removed entry that is still pinned is
// dead: no key finds it, its slots stay its own until the last unpin. Whoever gets an entry out
// (evicted, or released by the last unpin of a dead one) frees its slots: on_release tells.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.hpp"
#include "base/status.hpp"
#include "index/policy.hpp"

namespace kvo {

enum class entry_state : uint8_t { free, writing, ready, dead };

enum class leave_reason : uint8_t { evicted, purged, reset, suspect, shrunk, failed };

// The owner of slots and events. Called under the cache lock.
struct index_owner {
    virtual ~index_owner() = default;
    // A ready entry is no longer found by its key (its slots may still be pinned).
    virtual void on_unpublish(entry_id e, leave_reason why) = 0;
    // Nobody uses the record any more: free its slots and what else hangs on it.
    virtual void on_release(entry_id e) = 0;
};

struct index_config {
    uint32_t max_entries = 0;
    uint32_t n_groups = 1;
    kvo_policy_t policy = KVO_POLICY_LRU;
};

struct index_counts {
    uint32_t resident = 0;  // ready
    uint32_t writing = 0;
    uint32_t dead = 0;     // removed, still pinned
    uint32_t pinned = 0;   // entries with at least one pin
    uint32_t orphans = 0;  // ready, parent gone
    uint64_t orphaned_total = 0;
};

class block_index {
public:
    static uint64_t bytes_for(const index_config& config);        // ghosts included
    static uint64_t ghost_bytes_for(const index_config& config);  // of which ghosts
    static status create(const index_config& config, index_owner& owner,
                         std::unique_ptr<block_index>* out);
    ~block_index();

    // Most entries (ready + writing + dead) at once; reserve evicts when reached. <= max_entries.
    void set_capacity(uint32_t capacity);
    uint32_t capacity() const;
    index_counts counts() const;

    // out[i]: the live entry (writing or ready) of keys[i], else kNoEntry. Prefetches; at most
    // kKeysPerLock keys. Changes nothing.
    void find(ns_id ns, std::span<const kvo_key_t> keys, std::span<entry_id> out) const;

    // ---- one entry ----
    entry_state state(entry_id e) const;
    const kvo_key_t& key(entry_id e) const;
    ns_id ns(entry_id e) const;
    slot_id slot(entry_id e, uint32_t group) const;
    void set_slot(entry_id e, uint32_t group, slot_id slot);  // kNoSlot: absent
    uint32_t pins(entry_id e) const;
    // The parent's entry if it is still live and the link is known; kNoEntry otherwise.
    entry_id parent(entry_id e) const;
    bool is_orphan(entry_id e) const;  // had a parent, which is gone
    bool reused(entry_id e) const;     // hit at least once since commit
    uint64_t stored_at_ns(entry_id e) const;

    // ---- recency ----
    // An access that found e (ready or writing). Marks it reused. Of a dead one: nothing.
    void touch(entry_id e);
    // Says that parent is e's parent: adopts an orphan back. parent live. No effect if it is so
    // already.
    void link(entry_id e, entry_id parent);
    void pin(entry_id e);
    // Last unpin of a ready entry: it may leave again, placed behind the nearest of its ancestors
    // that may leave, too (of the last few; when all of them are pinned it is the most recent). Of
    // a dead one: on_release.
    void unpin(entry_id e);
    // The same for many, in the order given, several times faster.
    void touch(std::span<const entry_id> entries);
    void pin(std::span<const entry_id> entries);
    void pin_and_touch(
        std::span<const entry_id> entries);  // pinned first, so that all stay in place
    void unpin(std::span<const entry_id> entries);

    // ---- coming and going ----
    enum class lineage : uint8_t { root, child, held };  // held: ancestors are on the device only
    // Makes an entry for an absent key: writing, one pin, no slots yet. Evicts at most one entry
    // when full (orphans first). kNoEntry when everything is pinned; then nothing changed. The
    // parent of a child is pinned by the caller, or it could be the one evicted.
    entry_id reserve(ns_id ns, const kvo_key_t& key, lineage how, entry_id parent);
    // All bytes are there: visible. Drops the pin of reserve; e goes behind its parent.
    void commit(entry_id e, uint64_t now_ns);
    // The store failed or was withdrawn: gone without a ghost. Drops the pin of reserve; other pins
    // (of tickets that wait for it) keep a dead record.
    void abandon(entry_id e);
    // Ends the life of a live entry; its children become orphans. Writing entries: unpublished,
    // then dead until their store lets go (the store must then abandon() them, never commit()).
    void remove(entry_id e, leave_reason why);
    // remove() for the oldest entry that may leave; kNoEntry when none may (all pinned).
    entry_id evict_one(leave_reason why);

    // Children of e (to purge a chain), live ones. kNoEntry ends.
    entry_id first_child(entry_id e) const;
    entry_id next_sibling(entry_id e) const;
    // Walks all live entries in record order: the first at or after `from`, kNoEntry at the end.
    entry_id next_live(uint32_t from) const;

private:
    struct state_t;
    explicit block_index(std::unique_ptr<state_t> s);
    std::unique_ptr<state_t> s_;
};

}  // namespace kvo

#include "index/block_index.hpp"

#include <cassert>
#include <cstring>
#include <new>
#include <vector>

#include "index/key_hash.hpp"
#include "index/key_table.hpp"
#include "index/lineage.hpp"

namespace kvo {

namespace {

constexpr uint32_t kAncestorTries = 256;  // pinned ancestors passed on the way to one with a place
constexpr uint32_t kOrphanTries = 8;  // pinned orphans looked at before the policy gives a victim

struct record {
    kvo_key_t key{};
    ns_id ns{};
    uint32_t pins = 0;
    uint64_t stored_at_ns = 0;
    entry_state state = entry_state::free;
    bool reused = false;
};

}  // namespace

struct block_index::state_t {
    state_t(const index_config& c, index_owner& o)
        : config(c),
          owner(o),
          capacity(c.max_entries),
          records(c.max_entries),
          slots(uint64_t{c.max_entries} * c.n_groups, kNoSlot),
          table(c.max_entries),
          rings(c.max_entries),
          order(make_policy(c.policy, c.max_entries)) {
        free.reserve(c.max_entries);
        for (uint32_t i = c.max_entries; i-- > 0;) free.push_back(i);
    }

    uint32_t n_used() const { return config.max_entries - static_cast<uint32_t>(free.size()); }
    record& at(entry_id e) { return records[raw(e)]; }
    uint64_t digest(const record& r) const { return key_digest(r.ns, r.key); }

    void unpublish(uint32_t i);
    void release(uint32_t i);
    void leave(uint32_t i, leave_reason why);
    entry_id orphan_victim();
    entry_id placed_ancestor(uint32_t i) const;

    index_config config;
    index_owner& owner;
    uint32_t capacity;
    index_counts counts;
    std::vector<record> records;
    std::vector<slot_id> slots;
    std::vector<uint32_t> free;
    key_table table;
    lineage_rings rings;
    std::unique_ptr<policy> order;
};

block_index::block_index(std::unique_ptr<state_t> s) : s_(std::move(s)) {}
block_index::~block_index() = default;

uint64_t block_index::bytes_for(const index_config& c) {
    const uint64_t n = c.max_entries;
    return n * (sizeof(record) + 4 * uint64_t{c.n_groups} + 4) + key_table::bytes_for(c.max_entries) +
           lineage_rings::bytes_for(c.max_entries) + policy_bytes(c.policy, c.max_entries);
}

status block_index::create(const index_config& config, index_owner& owner,
                           std::unique_ptr<block_index>* out) {
    try {
        out->reset(new block_index(std::make_unique<state_t>(config, owner)));
    } catch (const std::bad_alloc&) {
        return fail(KVO_E_MEMORY, "no memory for the index: {} bytes for {} blocks",
                    bytes_for(config), config.max_entries);
    }
    return KVO_OK;
}

void block_index::set_capacity(uint32_t capacity) {
    s_->capacity = capacity;
    s_->order->set_capacity(capacity);
}
uint32_t block_index::capacity() const { return s_->capacity; }

index_counts block_index::counts() const {
    index_counts c = s_->counts;
    c.orphans = s_->rings.n_orphans();
    return c;
}

// Three passes, so that the cache misses of different keys overlap: table places, then entries, then the
// comparison.
void block_index::find(ns_id ns, std::span<const kvo_key_t> keys, std::span<entry_id> out) const {
    assert(keys.size() <= kKeysPerLock && out.size() >= keys.size());
    uint64_t digests[kKeysPerLock];
    for (size_t i = 0; i < keys.size(); ++i) {
        digests[i] = key_digest(ns, keys[i]);
        s_->table.prefetch(digests[i]);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        const uint32_t guess = s_->table.guess(digests[i]);
        if (guess != key_table::kEmpty) __builtin_prefetch(&s_->records[guess], 1);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        out[i] = entry_id{s_->table.find(digests[i], [&](uint32_t e) {
            const record& r = s_->records[e];
            return r.ns == ns && std::memcmp(r.key.bytes, keys[i].bytes, sizeof r.key.bytes) == 0;
        })};
    }
}

entry_state block_index::state(entry_id e) const { return s_->at(e).state; }
const kvo_key_t& block_index::key(entry_id e) const { return s_->at(e).key; }
ns_id block_index::ns(entry_id e) const { return s_->at(e).ns; }
uint32_t block_index::pins(entry_id e) const { return s_->at(e).pins; }
bool block_index::reused(entry_id e) const { return s_->at(e).reused; }
uint64_t block_index::stored_at_ns(entry_id e) const { return s_->at(e).stored_at_ns; }

slot_id block_index::slot(entry_id e, uint32_t group) const {
    return s_->slots[uint64_t{raw(e)} * s_->config.n_groups + group];
}
void block_index::set_slot(entry_id e, uint32_t group, slot_id slot) {
    s_->slots[uint64_t{raw(e)} * s_->config.n_groups + group] = slot;
}

entry_id block_index::parent(entry_id e) const { return entry_id{s_->rings.parent(raw(e))}; }
bool block_index::is_orphan(entry_id e) const { return s_->rings.is_orphan(raw(e)); }
entry_id block_index::first_child(entry_id e) const { return entry_id{s_->rings.first_child(raw(e))}; }
entry_id block_index::next_sibling(entry_id e) const { return entry_id{s_->rings.next_sibling(raw(e))}; }

entry_id block_index::next_live(uint32_t from) const {
    for (uint32_t i = from; i < s_->config.max_entries; ++i) {
        const entry_state now = s_->records[i].state;
        if (now == entry_state::writing || now == entry_state::ready) return entry_id{i};
    }
    return kNoEntry;
}

void block_index::touch(entry_id e) {
    record& r = s_->at(e);
    r.reused = true;
    s_->order->hit(e);
}

void block_index::link(entry_id e, entry_id parent) { s_->rings.link(raw(e), raw(parent)); }

void block_index::pin(entry_id e) {
    record& r = s_->at(e);
    if (r.pins++ > 0) return;
    ++s_->counts.pinned;
    if (r.state == entry_state::ready) s_->order->pin(e);
}

void block_index::unpin(entry_id e) {
    record& r = s_->at(e);
    assert(r.pins > 0);
    if (--r.pins > 0) return;
    --s_->counts.pinned;
    if (r.state == entry_state::ready) {
        s_->order->unpin(e, s_->placed_ancestor(raw(e)));
    } else if (r.state == entry_state::dead) {
        s_->release(raw(e));
    }
}

// The nearest ancestor with a place among the victims. Pinned ones have none: were e placed as most recent
// while only its parent is pinned, it would stay longer than what it hangs on.
entry_id block_index::state_t::placed_ancestor(uint32_t i) const {
    uint32_t at = rings.parent(i);
    for (uint32_t n = 0; n < kAncestorTries && at != kNil; ++n, at = rings.parent(at)) {
        if (records[at].pins == 0 && records[at].state == entry_state::ready) return entry_id{at};
    }
    return kNoEntry;
}

// No key finds it from here on; its children have lost their parent.
void block_index::state_t::unpublish(uint32_t i) {
    record& r = records[i];
    table.erase(digest(r), i);
    counts.orphaned_total += rings.unlink(i);
    --(r.state == entry_state::ready ? counts.resident : counts.writing);
    r.state = entry_state::dead;
    ++counts.dead;
}

void block_index::state_t::release(uint32_t i) {
    record& r = records[i];
    --counts.dead;
    r.state = entry_state::free;
    owner.on_release(entry_id{i});
    for (uint32_t g = 0; g < config.n_groups; ++g) slots[uint64_t{i} * config.n_groups + g] = kNoSlot;
    free.push_back(i);
}

// The policy has let go of it already.
void block_index::state_t::leave(uint32_t i, leave_reason why) {
    const bool was_ready = records[i].state == entry_state::ready;
    if (was_ready) owner.on_unpublish(entry_id{i}, why);
    unpublish(i);
    if (records[i].pins == 0) release(i);
}

entry_id block_index::state_t::orphan_victim() {
    for (uint32_t n = 0; n < kOrphanTries && rings.first_orphan() != kNil; ++n) {
        const uint32_t i = rings.first_orphan();
        if (records[i].state == entry_state::ready && records[i].pins == 0) {
            order->remove(entry_id{i});
            return entry_id{i};
        }
        rings.rotate_orphans();
    }
    return kNoEntry;
}

entry_id block_index::reserve(ns_id ns, const kvo_key_t& key, lineage how, entry_id parent) {
    if (s_->capacity == 0) return kNoEntry;
    const uint64_t d = key_digest(ns, key);
    const bool full = s_->n_used() >= s_->capacity;
    const admission a = s_->order->admit(d, full);
    if (full) {
        // While capacity shrinks there may be far too many entries; one out, one in keeps it steady.
        entry_id victim = s_->orphan_victim();
        if (victim == kNoEntry) victim = s_->order->victim(a);
        if (victim == kNoEntry) {
            s_->order->refuse(a);
            return kNoEntry;
        }
        s_->leave(raw(victim), leave_reason::evicted);
    }
    const uint32_t i = s_->free.back();
    s_->free.pop_back();
    record& r = s_->records[i];
    r = {key, ns, 1, 0, entry_state::writing, false};
    ++s_->counts.writing;
    ++s_->counts.pinned;
    s_->table.insert(d, i);
    s_->rings.start(i);
    if (how == lineage::child && parent != kNoEntry) s_->rings.link(i, raw(parent));
    s_->order->insert(entry_id{i}, a);
    return entry_id{i};
}

void block_index::commit(entry_id e, uint64_t now_ns) {
    record& r = s_->at(e);
    assert(r.state == entry_state::writing);
    r.state = entry_state::ready;
    r.stored_at_ns = now_ns;
    --s_->counts.writing;
    ++s_->counts.resident;
    unpin(e);
}

void block_index::abandon(entry_id e) {
    record& r = s_->at(e);
    if (r.state == entry_state::writing) {
        s_->order->remove(e);
        s_->unpublish(raw(e));
    }
    unpin(e);
}

void block_index::remove(entry_id e, leave_reason why) {
    s_->order->remove(e);
    s_->leave(raw(e), why);
}

entry_id block_index::evict_one(leave_reason why) {
    entry_id victim = s_->orphan_victim();
    if (victim == kNoEntry) victim = s_->order->oldest();
    if (victim != kNoEntry) s_->leave(raw(victim), why);
    return victim;
}

}  // namespace kvo

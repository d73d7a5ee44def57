#include "index/block_index.hpp"

#include <cassert>
#include <new>

#include "index/index_state.hpp"
#include "index/key_hash.hpp"

namespace kvo {

block_index::block_index(std::unique_ptr<state_t> s) : s_(std::move(s)) {}
block_index::~block_index() = default;

uint64_t block_index::bytes_for(const index_config& c) {
    const uint64_t n = c.max_entries;
    return n * (sizeof(record) + sizeof(record_side) + sizeof(slot_id) * further_slots(c)) +
           key_table::bytes_for(c.max_entries) + policy_bytes(c.policy, c.max_entries) +
           ghost_bytes_for(c);
}

uint64_t block_index::ghost_bytes_for(const index_config& c) {
    return ghost_bytes(c.policy, c.max_entries);
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

// Three passes, so that the cache misses of different keys overlap: table places, then records,
// then the comparison.
void block_index::find(ns_id ns, std::span<const kvo_key_t> keys, std::span<entry_id> out) const {
    assert(keys.size() <= kKeysPerLock && out.size() >= keys.size());
    const record* records = s_->records.data();
    uint64_t digests[kKeysPerLock];
    for (size_t i = 0; i < keys.size(); ++i) {
        digests[i] = key_digest(ns, keys[i]);
        s_->table.prefetch(digests[i]);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        const uint32_t guess = s_->table.guess(digests[i]);
        out[i] = entry_id{guess};
        if (guess != key_table::kEmpty) {
            __builtin_prefetch(&records[guess], 1);
        } else {
            s_->order->prefetch_ghost(
                digests[i]);  // who looks for an absent key may reserve it next
        }
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        if (out[i] == kNoEntry || records[raw(out[i])].is(ns, keys[i])) continue;
        out[i] = entry_id{
            s_->table.find(digests[i], [&](uint32_t e) { return records[e].is(ns, keys[i]); })};
    }
}

entry_state block_index::state(entry_id e) const { return s_->at(e).state; }
const kvo_key_t& block_index::key(entry_id e) const { return s_->at(e).key; }
ns_id block_index::ns(entry_id e) const { return ns_id{s_->at(e).ns}; }
uint32_t block_index::pins(entry_id e) const { return s_->at(e).order.pins; }
bool block_index::reused(entry_id e) const { return s_->at(e).reused; }
uint64_t block_index::stored_at_ns(entry_id e) const { return s_->sides[raw(e)].stored_at_ns; }
slot_id block_index::slot(entry_id e, uint32_t group) const { return s_->slot(raw(e), group); }
void block_index::set_slot(entry_id e, uint32_t group, slot_id slot) {
    s_->slot(raw(e), group) = slot;
}

entry_id block_index::parent(entry_id e) const { return entry_id{s_->rings.parent(raw(e))}; }
bool block_index::is_orphan(entry_id e) const { return s_->rings.is_orphan(raw(e)); }
entry_id block_index::first_child(entry_id e) const {
    return entry_id{s_->rings.first_child(raw(e))};
}
entry_id block_index::next_sibling(entry_id e) const {
    return entry_id{s_->rings.next_sibling(raw(e))};
}

entry_id block_index::next_live(uint32_t from) const {
    for (uint32_t i = from; i < s_->config.max_entries; ++i) {
        if (s_->records[i].is_live()) return entry_id{i};
    }
    return kNoEntry;
}

void block_index::touch(entry_id e) { touch(std::span(&e, 1)); }
void block_index::pin(entry_id e) { pin(std::span(&e, 1)); }
void block_index::unpin(entry_id e) { unpin(std::span(&e, 1)); }

void block_index::touch(std::span<const entry_id> entries) {
    s_->with_order([&](auto& order) {
        for (const entry_id e : entries) {
            record& r = s_->at(e);
            if (!r.is_live()) continue;
            r.reused = true;
            order.hit(e);
        }
    });
}

void block_index::pin(std::span<const entry_id> entries) {
    s_->with_order([&](auto& order) { s_->pin_all<false>(order, entries); });
}
void block_index::pin_and_touch(std::span<const entry_id> entries) {
    s_->with_order([&](auto& order) { s_->pin_all<true>(order, entries); });
}
void block_index::unpin(std::span<const entry_id> entries) {
    s_->with_order([&](auto& order) { s_->unpin_all(order, entries); });
}

void block_index::link(entry_id e, entry_id parent) {
    if (e != parent) s_->rings.link(raw(e), raw(parent));
}

entry_id block_index::reserve(ns_id ns, const kvo_key_t& key, lineage how, entry_id parent) {
    const bool has_parent = how == lineage::child && parent != kNoEntry;
    assert(!has_parent || s_->at(parent).order.pins > 0);
    if (s_->capacity == 0) return kNoEntry;
    const uint64_t digest = key_digest(ns, key);
    const bool full = s_->n_used >= s_->capacity;
    const admission a = s_->order->admit(digest, full);
    if (full) {
        // While capacity shrinks there may be far too many entries; one out, one in keeps it
        // steady.
        entry_id victim = s_->orphan_victim();
        if (victim == kNoEntry) victim = s_->order->victim(a);
        if (victim == kNoEntry) {
            s_->order->refuse(a);
            return kNoEntry;
        }
        s_->prefetch_victims();
        s_->leave(raw(victim), leave_reason::evicted);
    }
    const entry_id e = s_->take_record(ns, key);
    s_->table.insert(digest, raw(e));
    if (has_parent) s_->rings.link(raw(e), raw(parent));
    s_->order->insert(e, a);
    return e;
}

void block_index::commit(entry_id e, uint64_t now_ns) {
    record& r = s_->at(e);
    assert(r.state == entry_state::writing);
    r.state = entry_state::ready;
    s_->sides[raw(e)].stored_at_ns = now_ns;
    --s_->counts.writing;
    ++s_->counts.resident;
    unpin(e);
}

void block_index::abandon(entry_id e) {
    if (s_->at(e).state == entry_state::writing) {
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

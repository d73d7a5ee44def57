#include "index/index_state.hpp"

#include "index/key_hash.hpp"

namespace kvo {

namespace {

constexpr uint32_t kOrphanTries = 8;  // pinned orphans set aside before the policy gives a victim

uint64_t digest(const record& r) { return key_digest(ns_id{r.ns}, r.key); }

}  // namespace

block_index::state_t::state_t(const index_config& c, index_owner& o)
    : config(c),
      owner(o),
      capacity(c.max_entries),
      records(c.max_entries),
      sides(c.max_entries),
      more_slots(uint64_t{c.max_entries} * further_slots(c), kNoSlot),
      table(c.max_entries),
      rings(records.data(), sides.data()),
      order(
          make_policy(c.policy, c.max_entries, order_nodes(&records.data()->order, kRecordShift))) {
    for (uint32_t i = c.max_entries; i-- > 0;) {
        records[i].parent = free;
        free = i;
    }
}

// A new life: writing, with the pin of its store.
entry_id block_index::state_t::take_record(ns_id ns, const kvo_key_t& key) {
    const uint32_t i = free;
    record& r = records[i];
    free = r.parent;
    ++n_used;
    r.key = key;
    r.ns = static_cast<uint16_t>(raw(ns));
    r.state = entry_state::writing;
    r.reused = false;
    rings.start(i);
    sides[i].stored_at_ns = 0;
    ++counts.writing;
    ++counts.pinned;
    return entry_id{i};
}

void block_index::state_t::unpublish(uint32_t i) {
    record& r = records[i];
    table.erase(digest(r), i);
    counts.orphaned_total += rings.unlink(i);
    --(r.state == entry_state::ready ? counts.resident : counts.writing);
    r.state = entry_state::dead;
    ++counts.dead;
}

void block_index::state_t::release(uint32_t i) {
    --counts.dead;
    records[i].state = entry_state::free;
    owner.on_release(entry_id{i});
    for (uint32_t g = 0; g < config.n_groups; ++g) slot(i, g) = kNoSlot;
    records[i].parent = free;
    free = i;
    --n_used;
}

void block_index::state_t::leave(uint32_t i, leave_reason why) {
    if (records[i].state == entry_state::ready) owner.on_unpublish(entry_id{i}, why);
    unpublish(i);
    if (records[i].order.pins == 0) release(i);
}

entry_id block_index::state_t::orphan_victim() {
    for (uint32_t n = 0; n < kOrphanTries && rings.first_orphan() != kNil; ++n) {
        const uint32_t i = rings.first_orphan();
        if (records[i].order.pins == 0) {
            order->remove(entry_id{i});
            return entry_id{i};
        }
        rings.set_first_orphan_aside();
    }
    return kNoEntry;
}

// Two steps ahead: the next victim's place in the table, which needs its key, and the one after
// that as a whole. Each was fetched when it was itself one step further away.
void block_index::state_t::prefetch_victims() const {
    const entry_id next = order->likely_victim();
    if (next == kNoEntry) return;
    const record& r = records[raw(next)];
    const uint64_t d = digest(r);
    table.prefetch(d);
    order->prefetch_ghost(d);
    if (r.order.newer == kNil) return;
    __builtin_prefetch(&records[r.order.newer], 1);
    __builtin_prefetch(&sides[r.order.newer], 1);
}

}  // namespace kvo

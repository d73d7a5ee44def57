// Counters, gauges, events, and the small questions of the sequence level.
#include "cache/config.hpp"
#include "cache/state.hpp"

namespace kvo {

namespace {

void fill_transfer(const transfer_counts& t, kvo_stats_t* out) {
    out->load_ops = t.load_ops;
    out->load_ops_failed = t.load_ops_failed;
    out->load_bytes = t.load_bytes;
    out->load_ns = t.load_ns;
    out->store_ops = t.store_ops;
    out->store_ops_failed = t.store_ops_failed;
    out->store_bytes = t.store_bytes;
    out->store_ns = t.store_ns;
    out->slices = t.slices;
    out->pieces = t.pieces;
    out->pieces_merged = t.pieces_merged;
    out->host_waits = t.host_waits;
    out->fences = t.fences;
    out->fence_waits = t.fence_waits;
    out->ops_active = t.ops_active;
    out->completions_waiting = t.completions_waiting;
    out->fence_entries = t.fence_entries;
}

}  // namespace

status cache::stats(kvo_stats_t* out) {
    state& s = *state_;
    const uint32_t size = out->struct_size, version = out->api_version;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (status bad = check_struct("kvo_stats_t", size, version, sizeof *out); bad != KVO_OK)
        return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    *out = s.counters;
    out->struct_size = size;
    out->api_version = version;
    fill_transfer(s.engine->counts(), out);
    const index_counts c = s.index->counts();
    out->orphaned_blocks = c.orphaned_total;
    out->blocks_resident = c.resident;
    out->blocks_pinned = c.pinned;
    out->blocks_writing = c.writing;
    out->blocks_orphan = c.orphans;
    out->slots_free = s.pool.n_free();
    out->slots_zombie = c.dead + s.pool.n_to_scrub();
    out->tickets = s.tickets.n_used();
    out->reservations = s.reservations.n_used();
    out->blocks_now = s.index->capacity();
    out->blocks_target = s.growth_failed ? s.pool.usable() : s.target_blocks;
    out->block_bytes = s.plan.block_bytes;
    out->metadata_bytes = s.plan.metadata_bytes;
    out->budget_bytes = s.budget_bytes;
    lock.unlock();
    out->pool_touched_bytes = s.pool.touched_bytes();
    out->cpu_ns_worker = s.worker.cpu_ns();
    out->cpu_ns_setup = s.setup.cpu_ns();
    out->cpu_ns_copy = s.device.cpu_ns != nullptr ? s.device.cpu_ns(s.device.context) : 0;
    return KVO_OK;
}

status cache::events_poll(kvo_event_t* out, uint32_t max, uint32_t* n, uint64_t* lost) {
    state& s = *state_;
    *n = 0;
    *lost = 0;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    *n = s.events.take(out, max, lost);
    return KVO_OK;
}

const kvo_config_t& cache::config() const { return state_->config; }
uint32_t cache::n_groups() const { return state_->groups.size(); }
uint32_t cache::max_entries() const { return state_->plan.max_blocks; }
uint32_t cache::ratio(uint32_t group) const { return state_->groups[group].ratio; }
bool cache::on_device(uint32_t group) const { return state_->groups[group].on_device(); }
uint32_t cache::lag_tokens(uint32_t group) const { return state_->groups[group].lag_tokens; }
void cache::set_identity_keeper(identity_keeper* keeper) { state_->keeper = keeper; }
void cache::set_op_observer(op_observer* observer) { state_->observer = observer; }

}  // namespace kvo

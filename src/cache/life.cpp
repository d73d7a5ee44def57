// The life of a cache: create, groups, start, shutdown, destroy.
#include <algorithm>
#include <new>

#include "cache/config.hpp"
#include "cache/state.hpp"

namespace kvo {

namespace {

uint32_t next_cache_tag() {
    static std::atomic<uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) % (kCacheTags - 1) + 1;
}

}  // namespace

cache::cache(std::unique_ptr<state> s) : state_(std::move(s)) {}

uint64_t records_bytes(const kvo_config_t& c) {
    return handle_pool<ticket_record>::bytes_for(c.max_tickets) +
           handle_pool<reservation_record>::bytes_for(c.max_tickets) +
           op_notes::bytes_for(c.max_ops) + purge_queue::bytes_for(c.max_ops);
}

status cache::create(const kvo_config_t& config, const device_table* device,
                     const time_source& time, std::unique_ptr<cache>* out) {
    kvo_config_t filled;
    status s = check_config(config, &filled);
    if (s == KVO_OK) s = check_machine(filled.budget_bytes, 0, filled.host_share, "budget_bytes");
    if (s != KVO_OK) return s;
    if (device == nullptr)
        device = filled.device == KVO_DEVICE_NONE ? &no_device() : &host_device();
    try {
        out->reset(new cache(std::make_unique<state>(filled, *device, time, next_cache_tag())));
    } catch (const std::bad_alloc&) {
        return fail(KVO_E_MEMORY, "no memory for a cache without blocks");
    }
    return KVO_OK;
}

// Nothing of the child's copy may be touched: threads that don't exist there, a lock that may be
// held.
cache::~cache() {
    if (state_ == nullptr) return;
    if (state_->fork.forked()) {
        [[maybe_unused]] state* left_alone = state_.release();
        return;
    }
    (void)may_destroy(KVO_DESTROY_DISCARD);
    state& s = *state_;
    s.setup.stop([] {});
    s.worker.stop([&s] { s.engine->wake(); });
}

status cache::register_group(const kvo_group_config_t& config, uint32_t* group) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    const locked lock(s.mutex);
    if (s.phase != state::phase_t::created) {
        return fail(KVO_E_STATE, "groups are registered before kvo_cache_start");
    }
    return s.groups.add(config, s.config.block_tokens, s.config.device, group);
}

status cache::start(uint64_t extra_bytes_per_block, uint64_t extra_bytes) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (s.phase != state::phase_t::created)
        return fail(KVO_E_STATE, "kvo_cache_start was called before");
    if (s.groups.size() == 0)
        return fail(KVO_E_STATE, "register at least one group before kvo_cache_start");
    status done = KVO_E_MEMORY;
    try {
        done = s.build(extra_bytes_per_block, extra_bytes);
    } catch (const std::bad_alloc&) {
        done = fail(KVO_E_MEMORY, "the system gave no memory for {} bytes of metadata",
                    s.plan.metadata_bytes);
    }
    if (done == KVO_OK) done = s.start_threads();
    if (done != KVO_OK) s.tear_down();
    return done;
}

status cache::state::build(uint64_t extra_bytes_per_block, uint64_t extra_bytes) {
    const std::vector<group_layout> layouts = groups.layouts();
    transfer_config t = transfer_config_for(config, groups.size());
    t.first_serial = (uint64_t{tag} % 2048 << 32) + 1;  // so that ids of other caches are foreign here
    const budget_inputs in = budget_inputs_for(config, groups, extra_bytes_per_block, extra_bytes);
    status s = make_plan(in, &plan);
    if (s == KVO_OK) s = check_machine(config.budget_bytes, 0, config.host_share, "budget_bytes");
    if (s != KVO_OK) return s;

    const index_config ic{plan.max_blocks, groups.size(), static_cast<kvo_policy_t>(config.policy)};
    if ((s = block_index::create(ic, *this, &index)) != KVO_OK) return s;
    index->set_capacity(0);
    if ((s = pool.create(plan, groups, config)) != KVO_OK) return s;
    tickets.reset(config.max_tickets, tag);
    reservations.reset(config.max_tickets, tag);
    runs.reset(plan.run_pages);
    notes.reset(config.max_ops);
    purges.reset(config.max_ops);
    dead_side.assign(plan.max_blocks / 64 + 1, 0);
    dead_here.assign(plan.max_blocks / 64 + 1, 0);
    events.reset(config.event_ring);
    target_blocks = plan.blocks;
    return transfer_engine::create(t, layouts, device, time, mutex, *this, *this, &engine);
}

status cache::state::start_threads() {
    phase = phase_t::running;
    status s = KVO_OK;
    if (use_setup_thread()) {
        s = setup.start("kvo-setup", [this] { run_setup(); });
    } else {
        while (setup_step()) {
        }
        if (pool.usable() == 0) s = KVO_E_BUDGET;  // the text is populate's
    }
    if (s == KVO_OK && config.progress == KVO_PROGRESS_THREAD) {
        s = worker.start("kvo-worker", [this] { run_worker(); });
    }
    return s;
}

// After a start that failed: as before it, so that it may be tried again.
void cache::state::tear_down() {
    setup.stop([] {});
    phase = phase_t::created;
    engine.reset();
    index.reset();
    pool = pool_half{};
    growth_failed = false;
    target_blocks = 0;
}

void cache::state::run_worker() {
    while (!worker.stopping()) {
        engine->progress_once();
        chores();
        constexpr uint64_t kLongest = 100'000'000;  // wake() ends it earlier
        const bool more = !use_setup_thread() && setup_step();
        if (!more) engine->wait_for_work(kLongest);
    }
}

status cache::check_running() const {
    const locked lock(state_->mutex);
    return state_->check_running();
}
uint64_t cache::now_ns() const { return state_->time.now_ns(); }
status cache::check_process() const { return state_->check_process(); }

status cache::shutdown(uint64_t timeout_ns) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    locked lock(s.mutex);
    if (status bad = s.check_started(); bad != KVO_OK) return bad;
    if (s.phase == state::phase_t::running) {
        s.phase = state::phase_t::stopped;
        s.engine->close_intake();
        s.engine->cancel_all(KVO_E_CANCELLED);
    }
    s.engine->wake();
    const bool over = s.wait_until(lock, timeout_ns, [&s] { return s.engine->n_active() == 0; });
    if (over) return KVO_OK;
    return fail(KVO_E_TIMEOUT, "{} ops are still being copied; call kvo_cache_shutdown again",
                s.engine->n_active());
}

status cache::may_destroy(uint32_t flags) {
    state& s = *state_;
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if ((flags & ~KVO_DESTROY_DISCARD) != 0)
        return fail(KVO_E_ARGUMENT, "unknown flags {:#x}", flags);
    locked lock(s.mutex);
    if (s.phase == state::phase_t::created) return KVO_OK;
    const uint32_t n_untaken = s.engine->n_untaken();
    const uint32_t n_tickets = s.tickets.n_used(), n_reserved = s.reservations.n_used();
    if (flags == 0 && n_untaken + s.n_unfinished + n_tickets + n_reserved > 0) {
        return fail(KVO_E_BUSY,
                    "in use: {} ops unfinished, {} completions not taken, {} tickets, {} "
                    "reservations; take "
                    "and release them or pass KVO_DESTROY_DISCARD",
                    s.n_unfinished, n_untaken, n_tickets, n_reserved);
    }
    s.phase = state::phase_t::stopped;
    s.engine->close_intake();
    s.engine->cancel_all(KVO_E_CANCELLED);
    s.revoke_tickets(lock, true);
    s.drop_reservations(lock);
    s.engine->wake();
    s.wait_until(lock, KVO_FOREVER, [&s] { return s.engine->n_active() == 0; });
    return KVO_OK;
}

}  // namespace kvo

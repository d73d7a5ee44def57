// What a cache consists of, and the answers it gives to index and transfer engine (its owner side).
// Members are guarded by `mutex` unless said otherwise; the files of this folder share it, one per
// topic.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/budget.hpp"
#include "cache/cache.hpp"
#include "cache/event_ring.hpp"
#include "cache/fork_guard.hpp"
#include "cache/groups.hpp"
#include "cache/namespaces.hpp"
#include "cache/pool_half.hpp"
#include "cache/purge_queue.hpp"
#include "cache/records.hpp"
#include "cache/threads.hpp"
#include "index/block_index.hpp"
#include "transfer/transfer_engine.hpp"

namespace kvo {

using locked = std::unique_lock<std::mutex>;

struct cache::state final : index_owner, transfer_owner, transfer_engine::address_source {
    state(const kvo_config_t& filled, const device_table& table, const time_source& clock,
          uint32_t cache_tag);
    ~state();

    // ---- fixed at create ----
    kvo_config_t config;
    std::vector<uint8_t> fingerprint;
    const device_table device;
    const time_source time;
    const uint32_t tag;
    const fork_guard fork;
    identity_keeper* keeper = nullptr;
    op_observer* observer = nullptr;

    mutable std::mutex mutex;
    enum class phase_t : uint8_t { created, running, stopped } phase = phase_t::created;

    group_table groups;
    namespace_table names;
    budget_plan plan;
    uint64_t budget_bytes;  // as last asked
    std::unique_ptr<block_index> index;
    pool_half pool;
    handle_pool<ticket_record> tickets;
    handle_pool<reservation_record> reservations;
    run_room runs;
    op_notes notes;
    purge_queue purges;
    std::vector<uint64_t> dead_side;  // a bit per entry: side of its namespace it is counted on
    std::vector<uint64_t> dead_here;  // a bit per entry: it is counted there
    event_ring events;
    kvo_stats_t counters{};  // those that only grow
    uint64_t generation = 1;
    uint32_t resets_running = 0;
    uint32_t n_unfinished = 0;  // ops that are not over and will have a completion
    uint64_t pending_refs = 0;  // entries that tickets hold without having seen them ready
    std::unique_ptr<transfer_engine> engine;

    // ---- set-up work ----
    uint32_t target_blocks = 0;  // where set-up or resize is heading
    bool growth_failed = false;  // memory was short: growth has stopped
    uint32_t move_cursor = 0;    // entry at which the search for slots to empty goes on
    uint32_t setup_paused = 0;
    std::mutex setup_step_mutex;  // one step at a time; taken before `mutex`, never inside it
    worker_thread worker, setup;

    int fd = -1;
    bool fd_due = false;  // a completion came since the last write
    std::atomic<bool> chores_due{false};

    // ---- checks (each sets the error text) ----
    status check_process() const;  // KVO_E_FORKED; without the lock
    status check_running() const;  // KVO_E_STATE unless running
    status check_started() const;  // KVO_E_STATE before start
    status check_attached(uint32_t group_mask) const;
    status check_generation(uint64_t expected) const;  // KVO_E_DROPPED after a reset; 0: any
    status check_stream(void* stream) const;  // without the lock

    // ---- index_owner ----
    void on_unpublish(entry_id e, leave_reason why) override;
    void on_release(entry_id e) override;
    // ---- transfer_owner ----
    void block_over(kvo_op_kind_t kind, uint64_t op_tag, op_block& block) override;
    void op_over(uint64_t op_tag, const kvo_completion_t& completion) override;
    // ---- address_source ----
    uint8_t* slot_address(uint32_t g, slot_id slot) const override { return pool.address(g, slot); }

    // ---- entries ----
    uint32_t all_groups() const { return (1u << groups.size()) - 1; }
    uint32_t groups_present(entry_id e) const;  // bit per group whose bytes are or will be there
    bool is_filling_any(entry_id e) const;
    bool is_complete(entry_id e) const { return groups_present(e) == all_groups(); }
    bool is_live(entry_id e) const;
    bool is_identified(entry_id e) const { return keeper != nullptr && keeper->keeps(e); }
    slot_id take_slot(uint32_t g, slot_id near);
    // side: of the namespace, on which a slot that has to be zeroed first is counted.
    void give_slot(uint32_t g, slot_id slot, ns_id ns, uint8_t side);
    void give_slot(uint32_t g, slot_id slot, ns_id ns) { give_slot(g, slot, ns, names[ns].side); }
    void slot_scrubbed(const scrubbed& done);
    void remove_entry(entry_id e,
                      leave_reason why);  // remove, counted for purges while it is pinned
    void abandon_entry(entry_id e);       // the same for a store that failed
    void entry_died(entry_id e);
    void store_block_over(op_block& block, const op_note& note);
    void load_block_over(op_block& block, const op_note& note);
    void add_event(kvo_event_kind_t kind, uint32_t reason, entry_id e);

    // ---- ops ----
    status open_op(op_request request, uint64_t owner_tag, uint32_t group_mask, op_index* op,
                   uint64_t* op_tag);
    void close_note(uint64_t op_tag);
    // Submits an open op, or drops it when `so_far` is an error. Lets go of the lock.
    status finish_submit(locked& lock, op_index op, uint64_t op_tag, status so_far, void* stream,
                         kvo_op_t* out, shared_gate* gate = nullptr);
    // After calls of the engine and unpins: what must not happen inside them. Without the lock.
    void chores();
    // One round of progress for manual mode. Without the lock.
    bool drive();
    // Waits until done() (asked under the lock) or the time is over, driving in manual mode.
    template <typename Done>
    bool wait_until(locked& lock, uint64_t timeout_ns, Done done);

    // ---- tickets ----
    uint64_t max_pinned_blocks() const;
    bool may_pin(entry_id e) const;
    // Unpins first to last, in stretches; run is the caller's own by then.
    void release_run(locked& lock, id_run* r, uint32_t n_pending);
    void drop_ticket(locked& lock, uint64_t handle);
    void drop_reservation(locked& lock, uint64_t handle);
    void drop_reservations(locked& lock);
    void revoke_tickets(locked& lock, bool viewed_too);
    void revoke_purged(locked& lock, ns_id ns, bool whole_ns);
    void remove_all(locked& lock, const ns_id* only, leave_reason why);
    void remove_chain(locked& lock, ns_id ns, const kvo_key_t& root);
    void remove_orphans(locked& lock, ns_id ns);

    // ---- life ----
    status build(uint64_t extra_bytes_per_block, uint64_t extra_bytes);
    status start_threads();
    void tear_down();
    void run_worker();

    // ---- set-up: steps return true when they did something ----
    bool use_setup_thread() const { return config.setup == KVO_SETUP_BACKGROUND; }
    bool setup_step();
    bool grow_step(locked& lock);
    bool shrink_step(locked& lock);
    bool move_out_step(locked& lock);
    bool move_out(locked& lock, entry_id e);
    bool scrub_step(locked& lock);
    bool shrink_is_over() const;
    void set_usable(locked& lock, uint32_t n);
    void run_setup();

    void log(kvo_log_level_t level, const char* text) const;
};

template <typename Done>
bool cache::state::wait_until(locked& lock, uint64_t timeout_ns, Done done) {
    // The caller's patience is real time, whatever clock drives deadlines.
    const uint64_t start = read_clock(CLOCK_MONOTONIC);
    while (!done()) {
        const uint64_t waited = read_clock(CLOCK_MONOTONIC) - start;
        if (waited >= timeout_ns) return false;
        lock.unlock();
        if (config.progress == KVO_PROGRESS_MANUAL) {
            drive();
        } else {
            constexpr uint64_t kLook = 1'000'000;  // the end may come from elsewhere than an op
            engine->wait_for_end(timeout_ns - waited < kLook ? timeout_ns - waited : kLook);
            chores();
        }
        lock.lock();
    }
    return true;
}

}  // namespace kvo

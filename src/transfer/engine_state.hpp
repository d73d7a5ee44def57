// Everything the transfer engine holds, and its parts that need the cache lock. Internal to src/transfer.
//
// Two locks. `mutex` is the cache lock: records, lists, fence table. `inside` lets one thread at a time make
// device calls for the lanes (progress, or a wait that pulls an op forward); it is taken before `mutex`
// and device calls are made while only `inside` is held.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "transfer/fence_table.hpp"
#include "transfer/lanes.hpp"
#include "transfer/pacer.hpp"
#include "transfer/planner.hpp"
#include "transfer/records.hpp"

namespace kvo {

// Loads that failed, so that a store that names one later is told. Bounded: of ids older than what fell out
// nothing is known any more.
class failed_loads {
public:
    explicit failed_loads(uint32_t n) : ids_(n, 0) {}
    void add(uint64_t id) {
        uint64_t& place = ids_[next_++ % ids_.size()];
        unknown_up_to_ = std::max(unknown_up_to_, place);
        place = id;
    }
    // True if it failed, or if that can't be ruled out.
    bool may_have(uint64_t id) const {
        return id <= unknown_up_to_ || std::find(ids_.begin(), ids_.end(), id) != ids_.end();
    }
    bool any() const { return next_ > 0; }

private:
    std::vector<uint64_t> ids_;
    uint64_t next_ = 0;
    uint64_t unknown_up_to_ = 0;
};

// What has been handed to the device for the slice that is being queued.
struct slice_build {
    copy_direction direction = copy_direction::load;
    uint32_t n_calls = 0;        // descriptors in `calls`, not handed over yet
    uint32_t n_before = 0;       // descriptors of earlier rounds of this slice
    uint32_t n_queued = 0;       // of all rounds
    status result = KVO_OK;
    uint32_t last_piece = kNone; // end of the slice's chain
};

struct transfer_engine::state {
    state(const transfer_config& c, std::span<const group_layout> groups, const device_table& d,
          const time_source& t, std::mutex& m, const address_source& a, transfer_owner& o);
    ~state();

    // ---- records (lock held) ----
    op_record* find(uint64_t id);
    uint32_t number_of(uint64_t id) const { return static_cast<uint32_t>(id & (kIdStep - 1)); }
    bool was_issued(uint64_t id) const {
        return id / kIdStep >= config.first_serial && id / kIdStep < next_serial;
    }
    void accept(uint32_t i);
    void become_ready(uint32_t i);
    status take_gate(op_record& r, shared_gate* shared, bool* must_record);
    void leave_gate(op_record& r);
    void leave_gate_number(uint32_t gate);
    void withdraw_piece(uint32_t p, status why);
    void after_withdrawal(uint32_t i);
    void withdraw_op(uint32_t i, status why);
    void piece_over(uint32_t p, status result);
    void deliver(uint32_t b);
    void deliver_ready_blocks(uint32_t i);
    void maybe_finish(uint32_t i);
    void load_ended(const op_record& load);
    void free_blocks_of(op_record& r);
    void free_records(uint32_t i);

    // ---- progress (inside held, lock not held unless said) ----
    void clean_up_lost();
    void poll_gates();
    void end_late_ops();
    void retire(uint8_t lane);
    void retire_oldest(uint8_t lane, status result);
    void fill(uint8_t lane);
    uint32_t next_op_for(uint8_t lane);                                        // lock held
    bool take_pieces(uint32_t op, uint64_t window_bytes, slice_record* slice, slice_build* build);  // lock held
    void call_device(uint8_t lane, slice_build* build);
    void record(uint8_t lane, slice_record* slice);
    void settle(uint8_t lane, uint32_t op, const slice_record& slice, const slice_build& build);  // lock held
    status pull_forward(uint64_t id);  // neither held
    bool in_flight() const;
    void* next_to_happen(uint64_t* limit_ns);  // neither held

    // ---- waiting on behalf of a caller ----
    status failure_so_far(const op_record& r) const;  // lock held
    status check_waiter(void* stream) const;
    struct slices_to_wait_for {
        uint64_t serial[kLanes] = {};
        bool any() const { return serial[0] + serial[1] + serial[2] + serial[3] > 0; }
        void add(const piece_record& p) { serial[p.lane] = std::max(serial[p.lane], p.slice_serial); }
    };
    status wait_for_slices(const slices_to_wait_for& which, void* stream, std::unique_lock<std::mutex>& lock);
    void check_fence_block(uint32_t group, uint32_t id, kvo_fence_mode_t mode, slices_to_wait_for* which,
                           bool* issuing_now, uint64_t* to_pull);

    // Batches at once that share gates; any further one records an event per op.
    static constexpr uint32_t kMostSharedGates = 64;
    static constexpr uint64_t kIdStep = uint64_t{1} << 20;

    transfer_config config;
    device_table device;
    time_source time;
    std::mutex& mutex;
    const address_source& addresses;
    transfer_owner& owner;

    std::vector<piece_record> pieces;
    std::vector<block_record> blocks;
    std::vector<op_record> ops;
    std::vector<gate_record> gates;
    number_pool free_pieces, free_blocks, free_ops, free_gates;
    uint32_t n_shared_gates = 0;  // held by batches that are being submitted
    uint64_t next_serial;
    bool closed = false;  // no op is accepted any more
    op_list gated, done;
    op_list ready[2];  // load, store
    uint32_t n_active = 0, n_with_deadline = 0, n_waiting_after = 0;
    failed_loads failed{4096};
    fence_table fences;
    planner plan;
    pacer pace;
    transfer_counts counts;
    status lost = KVO_OK;  // KVO_E_DEVICE_LOST once that happened
    bool cleaned_up = false;  // after that

    std::mutex inside;
    lane_state lanes[kLanes];
    std::vector<copy_piece> calls;  // descriptors of the slice being queued
    std::condition_variable issued;  // with mutex: nothing is issuing
    bool issuing = false;

    std::mutex sleep_mutex;
    std::condition_variable work, ended;
    std::atomic<uint64_t> work_number{0}, end_number{0};
    uint64_t seen_work = 0;  // worker only
    std::atomic<bool> sleeping{false};
    std::atomic<void*> waiting_on{nullptr};  // the event that the worker waits for
};

}  // namespace kvo

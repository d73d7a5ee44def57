// The transfer engine: ops (loads and stores) made of blocks made of pieces. It queues pieces on its own
// streams in slices, paces them, watches their events, and tells its owner when a block or an op is over.
// It knows addresses and device blocks; of the cache it only knows entry ids to hand back.
//
// Locking: calls marked [lock] are made with the cache lock held and never call the device. Calls marked
// [free] are made without it, take it themselves in short stretches and call the device outside it.
// No allocation after create.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/status.hpp"
#include "device/device.hpp"
#include "kvoffload/kvo_block.h"
#include "kvoffload/kvo_cache.h"

namespace kvo {

// One group as the transfer engine sees it. A slot holds the parts packed one after another ("block
// first"); inside a part the device blocks of the host block in order, rows packed without pitch.
struct group_layout {
    std::span<const kvo_part_t> parts;
    uint32_t n_device_blocks = 0;
    uint32_t ratio = 1;       // device blocks per host block
    uint64_t slot_bytes = 0;  // >= sum over parts of ratio * rows * row_bytes
};

// One host block of an op. Filled by the owner at add_block, handed back when it is over.
struct op_block {
    entry_id entry = kNoEntry;
    uint32_t ordinal = 0;  // index in the caller's order
    status result = KVO_OK;
};

enum class op_phase : uint8_t { open, accepted, done };

// What the owner hears, always with the cache lock held.
struct transfer_owner {
    virtual ~transfer_owner() = default;
    // Every piece of this block is over (copied, failed or withdrawn). For a store the owner must not
    // publish yet when the op waits for other loads; block_over comes only when that is settled:
    // block.result is KVO_OK only if it was copied and all `after` loads succeeded. The owner may turn a
    // KVO_OK into an error (the block was purged meanwhile, a load is older than a reset): the completion
    // and whoever depends on the op then see that.
    virtual void block_over(kvo_op_kind_t kind, uint64_t tag, op_block& block) = 0;
    // The op is over, after block_over of each of its blocks and before its completion can be taken.
    virtual void op_over(uint64_t tag, const kvo_completion_t& completion) = 0;
};

struct transfer_config {
    uint32_t max_ops = 1024;
    uint32_t max_inflight_blocks = 65536;  // pieces' worth of device blocks over all ops
    uint64_t window_bytes = 0;             // 0: from the cost model, at most 4 MiB
    uint64_t store_bytes_per_s = 0;        // 0: no limit
    uint32_t n_groups = 1;
    uint64_t first_serial = 1;             // of ops; other caches count from elsewhere
};

struct transfer_counts {
    uint64_t slices = 0, pieces = 0, pieces_merged = 0, host_waits = 0, fences = 0, fence_waits = 0;
    uint64_t load_ops = 0, load_ops_failed = 0, load_bytes = 0, load_ns = 0;
    uint64_t store_ops = 0, store_ops_failed = 0, store_bytes = 0, store_ns = 0;
    uint64_t ops_active = 0, completions_waiting = 0, fence_entries = 0;
};

struct op_request {
    kvo_op_kind_t kind = KVO_OP_LOAD;
    uint64_t tag = 0;          // the owner's own
    uint64_t user_data = 0;
    uint64_t deadline_ns = 0;  // relative; 0: none
    bool detached = false;     // no completion is kept
    std::span<const kvo_op_t> after;
};

// One event for several ops that wait for the same point of the same stream. Made by the first of them
// that needs it; the caller keeps it for the length of one batch and gives it back with end_share.
struct shared_gate {
    uint32_t number = UINT32_MAX;
};

class transfer_engine {
public:
    static uint64_t bytes_for(const transfer_config& config, std::span<const group_layout> groups);
    // mutex: the cache lock. slot_base(group, slot) is the address of a slot.
    struct address_source {
        virtual ~address_source() = default;
        virtual uint8_t* slot_address(uint32_t group, slot_id slot) const = 0;
    };
    static status create(const transfer_config& config, std::span<const group_layout> groups,
                         const device_table& device, const time_source& time, std::mutex& mutex,
                         const address_source& addresses, transfer_owner& owner,
                         std::unique_ptr<transfer_engine>* out);
    ~transfer_engine();  // nothing in flight any more

    // ---- submitting: open [lock], add_block [lock] ..., then submit [free] or drop [lock] ----
    // Reserves the op record with its completion. KVO_E_OPS_FULL; KVO_E_HANDLE for an unknown `after`,
    // KVO_E_ARGUMENT for one that is no load, KVO_E_DEPENDENCY when one of them has failed already.
    status open(const op_request& request, op_index* op);
    // One device block range per group: ids holds n_ids device blocks (ratio per host block), kNoSlot or an
    // empty list for a group that takes no part. Enters the fence table at once. KVO_E_OPS_FULL when
    // records run out (nothing added), KVO_E_BUSY when a load's target already is one (the message names
    // it), KVO_E_RANGE for an id out of range.
    struct group_piece {
        slot_id slot = kNoSlot;
        std::span<const uint32_t> ids;
        uint32_t skip = 0;  // so many leading ids are holes
    };
    status add_block(op_index op, const op_block& block, std::span<const group_piece> groups);
    uint32_t n_blocks(op_index op) const;
    // *out names the op, detached or not.
    // Records the gate on the caller's stream and accepts the op. On failure the op is gone and block_over
    // was called for each of its blocks with that status; no completion comes. Wakes the worker via wake().
    // shared: the gate of the batch, all of it on this stream; NULL: a gate of its own.
    status submit(op_index op, void* stream, kvo_op_t* out, shared_gate* shared = nullptr);
    void end_share(shared_gate* shared);                        // [lock]
    // Gives an open op back, block_over for each block with `why`.
    void drop(op_index op, status why);
    // A purge completes when this is called. Other ops complete by themselves: without blocks at once, and
    // blocks without pieces (raw slots that the engine writes) are over when the gate has fired.  [lock]
    void finish_external(op_index op, status result);

    // ---- progress [free]: one thread at a time inside, others return at once ----
    // Polls events, retires slices, opens gates, fills windows. Returns true while anything is in flight
    // or waiting.
    bool progress_once();
    // Sleeps until there is something to do or the time is over. Only the worker.
    void wait_for_work(uint64_t timeout_ns);
    void wake();

    // ---- completions ----
    uint32_t take(kvo_completion_t* out, uint32_t max);         // [lock]
    status take_one(kvo_op_t op, kvo_completion_t* out);        // [lock] KVO_E_NOT_READY, KVO_E_HANDLE
    // Waits for any completion or op end; [free].
    void wait_for_end(uint64_t timeout_ns);

    // ---- control ----
    status cancel(kvo_op_t op, status why);                     // [lock] unqueued pieces end as `why`
    void cancel_all(status why);                                // [lock]
    void close_intake();                                        // [lock] submit: KVO_E_STATE from now on
    void cancel_group(uint32_t group, status why);              // [lock] unqueued pieces naming this group
    status fence(std::span<const kvo_blocks_t> blocks, void* stream, kvo_fence_mode_t mode);  // [free]
    // fence (drop) for the device blocks of this op's blocks from `first_ordinal` on, whoever else uses them.
    status fence_op(kvo_op_t op, uint32_t first_ordinal, void* stream);                       // [free]
    status wait_stream(kvo_op_t op, void* stream, uint32_t flags);                            // [free]
    uint32_t n_active() const;                                  // [lock] accepted, not over
    uint32_t n_untaken() const;                                 // [lock]
    transfer_counts counts() const;                             // [lock]
    // New base addresses after attach. [lock], nothing of that group in flight.
    void set_parts(uint32_t group, std::span<const kvo_part_t> parts);

private:
    struct state;
    explicit transfer_engine(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

}  // namespace kvo

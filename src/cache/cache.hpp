// The facade of the block level: an index half and a pool half behind the calls of the C interface,
// with the same types, one to one (the C header says what each call does). Thread-safe: one lock,
// taken for at most kKeysPerLock keys at a time and never held over a device call.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/status.hpp"
#include "device/device.hpp"
#include "kvoffload/kvo_block.h"
#include "kvoffload/kvo_cache.h"
#include "kvoffload/kvo_stats.h"

namespace kvo {

struct shared_gate;  // transfer/transfer_engine.hpp

// The sequence level's side of an exact check: what block i of a call consists of, beyond its key.
// Called under the cache lock; constant time a block.
struct identity {
    virtual ~identity() = default;
    virtual bool same(entry_id e, uint32_t i) const = 0;  // does entry e hold exactly this block?
    virtual bool keep(entry_id e, uint32_t i) = 0;        // remember it; false: no room
    // Entry e is block i, and so is all before it. Then: is e still what is known as the block before
    // the first one of this call? A key alone does not tell.
    virtual void settled(entry_id e, uint32_t i) = 0;
    virtual bool is_parent(entry_id e) const = 0;
};
struct identity_keeper {
    virtual ~identity_keeper() = default;
    virtual void forget(
        entry_id e) = 0;  // the record is free again; called for every released entry
    virtual bool keeps(entry_id e) const = 0;  // its content is known, not its key alone
};
// Told of the end of ops submitted with an owner tag other than 0, under the cache lock.
struct op_observer {
    virtual ~op_observer() = default;
    virtual void op_over(uint64_t owner_tag, const kvo_completion_t& completion) = 0;
};

// Extra arguments of the sequence level; all optional.
struct call_extras {
    identity* who =
        nullptr;  // exact check. A match then verifies the chain from block 0 on: each entry's
                  // content and that its parent is the entry before it; a mismatch is a miss
    // For op_observer. A store that has one tells its op even when it is detached.
    uint64_t owner_tag = 0;
    // Refused with KVO_E_DROPPED if the cache has been reset since this generation; 0: any.
    uint64_t generation = 0;
    // Stores of one batch on one stream: one event for all.
    shared_gate* gate = nullptr;
    // Loads: so many leading ids of each group's list are holes.
    std::array<uint32_t, kMaxGroups> skip_ids{};
};

class cache {
public:
    // device: the table to use instead of config.device (tests, later custom tables); null: by
    // config.
    static status create(const kvo_config_t& config, const device_table* device,
                         const time_source& time, std::unique_ptr<cache>* out);
    ~cache();

    status register_group(const kvo_group_config_t& config, uint32_t* group);
    // extra_bytes_per_block, extra_bytes: memory of the sequence level inside the budget.
    status start(uint64_t extra_bytes_per_block, uint64_t extra_bytes);
    status shutdown(uint64_t timeout_ns);
    status may_destroy(uint32_t flags);  // KVO_E_BUSY with the counts; waits for copies in flight
    status resize(uint64_t budget_bytes);
    status capacity(kvo_capacity_t* out);
    status group_detach(uint32_t group);
    status group_attach(uint32_t group, const kvo_part_t* parts, uint32_t n_parts);
    status quiesce(uint64_t timeout_ns);
    status reset();
    status setup_pause();
    status setup_resume();
    status ns_open(std::string_view name, const kvo_ns_options_t& options, kvo_ns_t* out);
    status ns_name(kvo_ns_t ns, std::string_view* out);  // lives as long as the cache

    status check_running() const;  // KVO_E_STATE before start and after shutdown
    uint64_t now_ns() const;
    status check_process() const;  // KVO_E_FORKED in a forked child, without a lock or a syscall
    status probe(kvo_ns_t ns, std::span<const kvo_key_t> keys, uint32_t n_local, kvo_match_t* out);
    status match(kvo_ns_t ns, std::span<const kvo_key_t> keys, uint32_t n_local,
                 const kvo_match_options_t& options, const call_extras& extras,
                 kvo_ticket_t* ticket, kvo_match_t* out);
    status ticket_poll(kvo_ticket_t ticket, kvo_match_t* out);
    status ticket_trim(kvo_ticket_t ticket, uint32_t n_keep);
    status ticket_release(kvo_ticket_t ticket);

    status load(kvo_ticket_t ticket, uint32_t first, uint32_t n, std::span<const kvo_blocks_t> dst,
                void* stream, const kvo_load_options_t& options, const call_extras& extras,
                kvo_op_t* op);
    status store(kvo_ns_t ns, std::span<const kvo_key_t> keys, const kvo_key_t* parent,
                 std::span<const kvo_blocks_t> src, void* stream,
                 const kvo_store_options_t& options, const call_extras& extras,
                 kvo_store_result_t* result, kvo_op_t* op);
    void end_share(shared_gate* gate);  // after the last call that named it
    status fence(std::span<const kvo_blocks_t> blocks, void* stream, kvo_fence_mode_t mode);
    // fence, mode DROP, for the device blocks of blocks first, first + 1, ... of this op's call.
    status fence_op(kvo_op_t op, uint32_t first, void* stream);
    status op_wait_stream(kvo_op_t op, void* stream, uint32_t flags);
    status poll(kvo_completion_t* out, uint32_t max, uint64_t budget_ns, uint32_t* n);
    status op_test(kvo_op_t op, kvo_completion_t* out);
    status op_wait(kvo_op_t op, uint64_t timeout_ns, kvo_completion_t* out);
    status op_cancel(kvo_op_t op);
    status pending(uint32_t* n);
    status event_fd(int* fd);
    status purge(kvo_ns_t ns, const kvo_key_t* chain, kvo_op_t* op);
    status reserve(kvo_ns_t ns, std::span<const kvo_key_t> keys, const kvo_key_t* parent,
                   const kvo_store_options_t& options, kvo_store_result_t* result,
                   kvo_reservation_t* out);
    status slot(kvo_reservation_t r, uint32_t i, uint32_t group, void** data, uint64_t* bytes);
    status commit(kvo_reservation_t r, void* stream, kvo_op_t* op);
    status abort(kvo_reservation_t r);
    status view(kvo_ticket_t ticket, uint32_t i, uint32_t group, const void** data,
                uint64_t* bytes);

    status stats(kvo_stats_t* out);
    status events_poll(kvo_event_t* out, uint32_t max, uint32_t* n, uint64_t* lost);

    // ---- for the sequence level ----
    const kvo_config_t& config() const;  // defaults filled in
    uint32_t n_groups() const;
    uint32_t max_entries() const;  // after start
    uint32_t ratio(uint32_t group) const;
    bool on_device(uint32_t group) const;  // not opaque
    uint32_t lag_tokens(uint32_t group) const;
    void set_identity_keeper(identity_keeper* keeper);  // before start
    void set_op_observer(op_observer* observer);        // before start
    uint64_t generation() const;                        // raised by reset

    struct state;  // known to the files of this folder only

private:
    explicit cache(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

}  // namespace kvo

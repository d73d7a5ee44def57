// All fields of kvo_stats_t with kind and help text: the one list behind Prometheus text and JSON. A test
// checks that it covers the struct.
#pragma once

// clang-format off
#define KVO_STATS_FIELDS(X) \
    X(match_calls, counter, "Calls of match and probe") \
    X(match_blocks_asked, counter, "Blocks asked for by match, beyond what the caller held") \
    X(match_blocks_ready, counter, "Blocks that a match found ready") \
    X(match_blocks_pending, counter, "Blocks that a match found on their way") \
    X(store_calls, counter, "Calls of store and reserve") \
    X(stored_blocks, counter, "Blocks that became visible") \
    X(store_present, counter, "Blocks offered to store that were here already") \
    X(store_pending, counter, "Blocks offered to store that another store was bringing") \
    X(store_refused_full, counter, "Blocks refused because nothing could leave") \
    X(store_refused_orphan, counter, "Blocks refused because their parent is neither here nor held") \
    X(store_refused_record, counter, "Blocks refused because in-flight records were used up") \
    X(store_refused_other, counter, "Blocks refused for holes or for room of extras") \
    X(evicted_blocks, counter, "Blocks that left to make room") \
    X(evicted_before_reuse, counter, "Blocks that left to make room without a single hit") \
    X(orphaned_blocks, counter, "Blocks that lost their parent") \
    X(purged_blocks, counter, "Blocks ended by purge or reset") \
    X(dropped_suspect, counter, "Blocks dropped because a copy from them failed") \
    X(identity_mismatches, counter, "Blocks whose key matched and whose content did not") \
    X(load_ops, counter, "Load ops accepted") \
    X(load_ops_failed, counter, "Load ops that ended with an error") \
    X(loaded_blocks, counter, "Blocks copied to the device") \
    X(load_bytes, counter, "Bytes copied to the device") \
    X(load_ns, counter, "Nanoseconds with loads in flight") \
    X(store_ops, counter, "Store ops accepted") \
    X(store_ops_failed, counter, "Store ops that ended with an error") \
    X(store_bytes, counter, "Bytes copied to the host") \
    X(store_ns, counter, "Nanoseconds with stores in flight") \
    X(store_blocks_withdrawn, counter, "Blocks of stores withdrawn by fence, cancel, deadline or reset") \
    X(store_blocks_failed, counter, "Blocks of stores whose copy failed") \
    X(store_blocks_dependency, counter, "Blocks of stores that depended on a failed load") \
    X(slices, counter, "Groups of copies queued with one event") \
    X(pieces, counter, "Device copies") \
    X(pieces_merged, counter, "Copies saved because neighbours were merged") \
    X(host_waits, counter, "Short waits of callers for queueing") \
    X(fences, counter, "Calls of fence") \
    X(fence_waits, counter, "Fences that made a stream wait") \
    X(blocks_resident, gauge, "Blocks visible now") \
    X(blocks_pinned, gauge, "Blocks pinned now") \
    X(blocks_writing, gauge, "Blocks on their way to the host") \
    X(blocks_orphan, gauge, "Visible blocks without their parent") \
    X(slots_free, gauge, "Free slots") \
    X(slots_zombie, gauge, "Slots of ended blocks that are still pinned") \
    X(ops_active, gauge, "Ops accepted and not over") \
    X(completions_waiting, gauge, "Completions not taken yet") \
    X(tickets, gauge, "Tickets held") \
    X(reservations, gauge, "Reservations held") \
    X(seqs, gauge, "Sequences open") \
    X(fence_entries, gauge, "Device blocks with copies in flight") \
    X(blocks_now, gauge, "Blocks that can be resident now") \
    X(blocks_target, gauge, "Blocks once set-up or resize is done") \
    X(block_bytes, gauge, "Host bytes of one block") \
    X(metadata_bytes, gauge, "Bytes of index, ghosts and records") \
    X(budget_bytes, gauge, "Budget as asked") \
    X(pool_touched_bytes, gauge, "Bytes of the pool backed by memory") \
    X(cpu_ns_worker, counter, "CPU nanoseconds of the worker thread") \
    X(cpu_ns_copy, counter, "CPU nanoseconds of the host device copying threads") \
    X(cpu_ns_setup, counter, "CPU nanoseconds of the set-up thread") \
    X(age_evicted_ns_sum, counter, "Sum of the ages of evicted blocks in nanoseconds")
// clang-format on

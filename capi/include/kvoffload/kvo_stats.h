/* kvoffload C ABI, part 5: what the cache did: counters, Prometheus text, JSON, events.
 *
 * Any thread, never blocks for a copy. Counters only grow (until destroy); gauges are of the moment. */
#ifndef KVOFFLOAD_KVO_STATS_H
#define KVOFFLOAD_KVO_STATS_H

#include "kvo_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvo_stats_t {
    uint32_t struct_size;
    uint32_t api_version;
    /* index, in blocks */
    uint64_t match_calls, match_blocks_asked, match_blocks_ready, match_blocks_pending;
    uint64_t store_calls, stored_blocks, store_present, store_pending, store_refused_full,
        store_refused_orphan, store_refused_record, store_refused_other;
    uint64_t evicted_blocks, evicted_before_reuse, orphaned_blocks, purged_blocks, dropped_suspect,
        identity_mismatches;
    /* transfer */
    uint64_t load_ops, load_ops_failed, loaded_blocks, load_bytes, load_ns;
    uint64_t store_ops, store_ops_failed, store_bytes, store_ns;
    uint64_t store_blocks_withdrawn, store_blocks_failed, store_blocks_dependency;
    uint64_t slices, pieces, pieces_merged, host_waits, fences, fence_waits;
    /* gauges */
    uint64_t blocks_resident, blocks_pinned, blocks_writing, blocks_orphan, slots_free, slots_zombie;
    uint64_t ops_active, completions_waiting, tickets, reservations, seqs, fence_entries;
    uint64_t blocks_now, blocks_target, block_bytes, metadata_bytes, budget_bytes, pool_touched_bytes;
    uint64_t cpu_ns_worker;   /* CPU time of the library's worker thread */
    uint64_t cpu_ns_copy;     /* CPU time of the host device's stream threads */
    uint64_t cpu_ns_setup;    /* CPU time of the set-up thread */
    uint64_t age_evicted_ns_sum; /* sum over evicted blocks of the time since they were stored */
} kvo_stats_t;
KVO_API void kvo_stats_init(kvo_stats_t* stats) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_stats(kvo_cache_t* cache, kvo_stats_t* out) KVO_NOEXCEPT;

/* Prometheus text exposition and JSON of all of kvo_stats_t. *needed gets the size with the final zero;
 * KVO_E_RANGE if size is smaller (buffer may be NULL then). */
KVO_API kvo_status_t kvo_metrics_text(kvo_cache_t* cache, char* buffer, size_t size, size_t* needed) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_stats_json(kvo_cache_t* cache, char* buffer, size_t size, size_t* needed) KVO_NOEXCEPT;

typedef enum kvo_event_kind {
    KVO_EVENT_STORED = 0,
    KVO_EVENT_REMOVED = 1,
    KVO_EVENT_KIND_FORCE_INT32 = INT32_MAX
} kvo_event_kind_t;
typedef enum kvo_remove_reason {
    KVO_REMOVED_EVICTED = 0,
    KVO_REMOVED_PURGED = 1,
    KVO_REMOVED_RESET = 2,
    KVO_REMOVED_SUSPECT = 3, /* its bytes can't be trusted: a copy from it failed */
    KVO_REMOVED_SHRUNK = 4,
    KVO_REMOVE_REASON_FORCE_INT32 = INT32_MAX
} kvo_remove_reason_t;

typedef struct kvo_event_t {
    uint32_t kind;   /* kvo_event_kind_t */
    uint32_t reason; /* kvo_remove_reason_t for REMOVED, else 0 */
    kvo_ns_t ns;
    kvo_key_t key;
} kvo_event_t;

/* Takes up to max events, oldest first, from the ring of config.event_ring entries; *lost gets how many
 * were overwritten since the last call. A removal comes before the store that reuses its room. */
KVO_API kvo_status_t kvo_events_poll(kvo_cache_t* cache, kvo_event_t* out, uint32_t max, uint32_t* n,
                                     uint64_t* lost) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

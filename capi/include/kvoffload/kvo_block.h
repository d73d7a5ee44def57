/* kvoffload C ABI, part 3: the block level, for engines that keep their own keys.
 *
 * A match pins a run of blocks in a ticket, a load copies any part of it to the device, a store copies
 * computed blocks to the host. Loads and stores are ops: accepted at once, copied by the library's own
 * streams, finished with exactly one completion each, which always means "we no longer touch these
 * blocks". All functions: any thread, never block unless said, never allocate after kvo_cache_start. */
#ifndef KVOFFLOAD_KVO_BLOCK_H
#define KVOFFLOAD_KVO_BLOCK_H

#include "kvo_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvo_match_t {
    uint32_t n_ready;   /* blocks from n_local on whose bytes are here */
    uint32_t n_pending; /* blocks after those whose store is still running (or that follow such a one) */
} kvo_match_t;

typedef struct kvo_match_options_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint64_t pending_deadline_ns; /* let go of pending blocks after this time; default 1 s; 0: take none */
} kvo_match_options_t;
#define KVO_MATCH_OPTIONS_INIT { (uint32_t)sizeof(kvo_match_options_t), KVO_API_VERSION, KVO_DEFAULT_U64 }

/* keys[0..n): the chain of one sequence, keys[i] the parent of keys[i+1]. The first n_local blocks are
 * held by the caller (they are on the device). Both look from n_local on for the longest run.
 * probe: the answer only; pins nothing, changes no recency. */
KVO_API kvo_status_t kvo_probe(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                               uint32_t n_local, kvo_match_t* out) KVO_NOEXCEPT;
/* match: pins the run and makes the chain most recent (root last). options NULL: defaults. *ticket is
 * {0} and out is zero when nothing matched. The run is cut where max_pinned_bytes or ticket room ends;
 * KVO_E_PINNED_FULL only when not one block of a match could be pinned. */
KVO_API kvo_status_t kvo_match(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                               uint32_t n_local, const kvo_match_options_t* options, kvo_ticket_t* ticket,
                               kvo_match_t* out) KVO_NOEXCEPT;
/* Where the ticket stands now: n_ready grows as stores finish; the run is cut where one failed or at the
 * deadline. */
KVO_API kvo_status_t kvo_ticket_poll(kvo_cache_t* cache, kvo_ticket_t ticket, kvo_match_t* out) KVO_NOEXCEPT;
/* Keeps the first n_keep blocks of the run, unpins the rest. */
KVO_API kvo_status_t kvo_ticket_trim(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t n_keep) KVO_NOEXCEPT;
/* Unpins. Ops in flight keep their own pins. Twice: KVO_E_HANDLE. */
KVO_API kvo_status_t kvo_ticket_release(kvo_cache_t* cache, kvo_ticket_t ticket) KVO_NOEXCEPT;

#define KVO_OP_DETACHED 1u /* no completion: the op only counts in the stats; *op is {0} */

typedef struct kvo_load_options_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint64_t user_data;   /* comes back in the completion */
    uint64_t deadline_ns; /* not queued this long after submit: the rest ends as KVO_E_DEADLINE; 0: none */
    uint32_t flags;       /* KVO_OP_DETACHED is not allowed for loads */
    uint32_t reserved;
} kvo_load_options_t;
#define KVO_LOAD_OPTIONS_INIT { (uint32_t)sizeof(kvo_load_options_t), KVO_API_VERSION, 0, 0, 0, 0 }

/* Copies blocks first..first+n of the ticket's ready run to the device. dst: one list per group, of
 * n * (block_tokens / device_block_tokens) ids, holes are skipped; groups without a list are not loaded.
 * Stream order: the copies start after everything queued on `stream` before this call (write after
 * read). The ids stay the op's until its completion; none may be the target of another load. n = 0 is
 * legal and completes at once. */
KVO_API kvo_status_t kvo_load(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t first, uint32_t n,
                              const kvo_blocks_t* dst, uint32_t n_groups, void* stream,
                              const kvo_load_options_t* options, kvo_op_t* op) KVO_NOEXCEPT;

/* What a store did with each key. */
typedef enum kvo_verdict {
    KVO_STORE_TAKEN = 0,     /* copied by this op */
    KVO_STORE_PRESENT = 1,   /* already here: costs nothing */
    KVO_STORE_PENDING = 2,   /* another store is already bringing it */
    KVO_STORE_DUPLICATE = 3, /* twice in this call: the first one counts */
    KVO_STORE_HOLE = 4,      /* a needed device block is KVO_NO_BLOCK */
    KVO_STORE_FULL = 5,      /* nothing could leave to make room */
    KVO_STORE_ORPHAN = 6,    /* its parent is neither here nor held nor taken by this call */
    KVO_STORE_NO_RECORD = 7, /* in-flight block records are used up */
    KVO_STORE_NO_EXTRAS = 8, /* no room for the salt or extras that the exact check keeps */
    KVO_VERDICT_FORCE_INT32 = INT32_MAX
} kvo_verdict_t;

#define KVO_STORE_UNCHAINED 2u /* the keys have no parents: no order, no reachability rule */

typedef struct kvo_store_options_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint64_t user_data;
    uint64_t deadline_ns;
    uint32_t flags;        /* KVO_OP_DETACHED, KVO_STORE_UNCHAINED */
    uint32_t parents_held; /* 1: all ancestors of keys[0] are on the device: accept it without its parent */
    const kvo_op_t* after; /* loads whose success this store depends on; copied */
    uint32_t n_after;      /* 0..8 */
    uint32_t reserved;
    uint8_t* verdicts;     /* NULL, or n bytes that get a kvo_verdict_t each, during the call */
} kvo_store_options_t;
#define KVO_STORE_OPTIONS_INIT { (uint32_t)sizeof(kvo_store_options_t), KVO_API_VERSION, 0, 0, 0, 0, NULL, 0, 0, NULL }

typedef struct kvo_store_result_t {
    uint32_t n_taken;
    uint32_t n_present; /* present or pending or duplicate */
    uint32_t n_refused; /* full, hole, orphan, no record, no extras */
    uint32_t reserved;
} kvo_store_result_t;

/* Copies blocks to the host. keys[0..n) is a chain below `parent` (NULL: keys[0] is a root). src: one
 * list per group. Takes what it can, in chain order; what is here already costs nothing and becomes most
 * recent. Never evicts a block of this call's own chain. A block is visible to others only after its
 * copy has completed. Stream order: the copies read after everything queued on `stream` before this call
 * (read after write). The ids are only read; overwrite them after the completion or after kvo_fence.
 * result and op may be NULL when KVO_OP_DETACHED is set; a store that takes nothing completes at once. */
KVO_API kvo_status_t kvo_store(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                               const kvo_key_t* parent, const kvo_blocks_t* src, uint32_t n_groups,
                               void* stream, const kvo_store_options_t* options,
                               kvo_store_result_t* result, kvo_op_t* op) KVO_NOEXCEPT;

typedef enum kvo_fence_mode {
    KVO_FENCE_DROP = 0,   /* withdraw copies not queued yet; `stream` waits for the queued ones */
    KVO_FENCE_FINISH = 1, /* queue the rest, then `stream` waits for all of them */
    KVO_FENCE_FORCE_INT32 = INT32_MAX
} kvo_fence_mode_t;

/* Call when device blocks are handed out again: afterwards work queued on `stream` may overwrite them.
 * No device call when nothing is in flight; never a host wait for a copy. With KVO_STREAM_IDLE there is
 * no stream to hold back: KVO_E_NOT_READY if copies are queued (withdrawals still happened); call again.
 * Otherwise KVO_E_NOT_READY only while the device refuses to record an event: call again, write nothing. */
KVO_API kvo_status_t kvo_fence(kvo_cache_t* cache, const kvo_blocks_t* blocks, uint32_t n_groups,
                               void* stream, kvo_fence_mode_t mode) KVO_NOEXCEPT;

#define KVO_WAIT_TRY 1u /* KVO_E_NOT_QUEUED instead of queueing the rest now */

/* Makes `stream` wait for the op. Pieces not queued yet are queued now, past the pacing window (a short
 * host wait, counted in the stats). KVO_E_ARGUMENT for KVO_STREAM_IDLE: use kvo_op_wait. KVO_E_NOT_READY as
 * for kvo_fence: call again, or kvo_op_wait. The op's own error if it has failed already. */
KVO_API kvo_status_t kvo_op_wait_stream(kvo_cache_t* cache, kvo_op_t op, void* stream, uint32_t flags) KVO_NOEXCEPT;

typedef enum kvo_op_kind {
    KVO_OP_LOAD = 0,
    KVO_OP_STORE = 1,
    KVO_OP_PURGE = 2,
    KVO_OP_KIND_FORCE_INT32 = INT32_MAX
} kvo_op_kind_t;

typedef struct kvo_completion_t {
    kvo_op_t op;
    uint64_t user_data;
    int32_t status;          /* kvo_status_t; KVO_OK or the first thing that went wrong */
    uint32_t kind;           /* kvo_op_kind_t */
    uint32_t n_blocks;       /* host blocks the op had taken */
    uint32_t n_done;         /* of those, copied (load) or visible (store) */
    uint32_t first_bad;      /* index in the call's order of the first block not done; n_blocks if none */
    int32_t driver_code;     /* the device's own error number, 0 if none */
    uint64_t bytes;          /* moved */
    uint64_t ns;             /* from submit to completion */
} kvo_completion_t;

/* Takes up to max completions, oldest first; *n gets their number. In manual mode also drives the
 * copies for up to budget_ns. */
KVO_API kvo_status_t kvo_poll(kvo_cache_t* cache, kvo_completion_t* out, uint32_t max, uint64_t budget_ns,
                              uint32_t* n) KVO_NOEXCEPT;
/* Takes the completion of this op if it is there (KVO_OK), else KVO_E_NOT_READY. Every completion is
 * taken exactly once, by poll, test or wait. */
KVO_API kvo_status_t kvo_op_test(kvo_cache_t* cache, kvo_op_t op, kvo_completion_t* out) KVO_NOEXCEPT;
/* The same, waiting on the host up to timeout_ns (KVO_E_TIMEOUT). */
KVO_API kvo_status_t kvo_op_wait(kvo_cache_t* cache, kvo_op_t op, uint64_t timeout_ns, kvo_completion_t* out) KVO_NOEXCEPT;
/* Withdraws what is not queued yet; the completion still comes. */
KVO_API kvo_status_t kvo_op_cancel(kvo_cache_t* cache, kvo_op_t op) KVO_NOEXCEPT;
/* Ops that are accepted and not finished (detached ones too): keep stepping while not zero. */
KVO_API kvo_status_t kvo_pending(kvo_cache_t* cache, uint32_t* n) KVO_NOEXCEPT;
/* A file descriptor that becomes readable when a completion is there (an eventfd, made at the first call,
 * owned by the cache). Reading it resets it; then call kvo_poll until it gives nothing. */
KVO_API kvo_status_t kvo_event_fd(kvo_cache_t* cache, int* fd) KVO_NOEXCEPT;

/* Ends the life of all blocks of a namespace, or of `chain` and everything below it. Invisible when the
 * call returns; the completion comes when the last byte is free (and zeroed, with scrub). Running loads
 * end as they are or as a miss; tickets go stale, but a viewed one keeps its bytes until its release. What
 * open sequences of the namespace compute afterwards is stored again: end or preempt them, and give changed
 * content (another adapter) another namespace. `chain` reaches what is linked below it; blocks stored with
 * parents_held are linked to nothing. */
KVO_API kvo_status_t kvo_purge(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* chain, kvo_op_t* op) KVO_NOEXCEPT;

/* Raw slots, for data that the engine writes itself (opaque groups, data from elsewhere). reserve takes
 * room for up to n keys, like kvo_store; result->n_taken new keys got it. slot gives the address of one;
 * commit makes the blocks visible after everything queued on `stream` now, and completes like a store;
 * abort gives them back. A reservation is never a victim. After kvo_purge or kvo_reset its addresses stay
 * writable until commit (whose completion says KVO_E_DROPPED) or abort. */
KVO_API kvo_status_t kvo_reserve(kvo_cache_t* cache, kvo_ns_t ns, const kvo_key_t* keys, uint32_t n,
                                 const kvo_key_t* parent, const kvo_store_options_t* options,
                                 kvo_store_result_t* result, kvo_reservation_t* out) KVO_NOEXCEPT;
/* i: index in the keys given to reserve. KVO_E_RANGE if that key got no slot. */
KVO_API kvo_status_t kvo_slot(kvo_cache_t* cache, kvo_reservation_t r, uint32_t i, uint32_t group,
                              void** data, uint64_t* bytes) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_commit(kvo_cache_t* cache, kvo_reservation_t r, void* stream, kvo_op_t* op) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_abort(kvo_cache_t* cache, kvo_reservation_t r) KVO_NOEXCEPT;
/* Address of the bytes of block i of the ticket's ready run, readable until the ticket is released,
 * whatever is purged or reset meanwhile. */
KVO_API kvo_status_t kvo_view(kvo_cache_t* cache, kvo_ticket_t ticket, uint32_t i, uint32_t group,
                              const void** data, uint64_t* bytes) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

/* kvoffload C ABI, part 2: the life of a cache.
 *
 * Order: kvo_cache_create -> kvo_register_group (one or more) -> kvo_cache_start -> use ->
 * kvo_cache_shutdown -> kvo_cache_destroy. Any function from any thread, except that create, register,
 * start and destroy of one cache must not run at the same time as other calls on it. */
#ifndef KVOFFLOAD_KVO_CACHE_H
#define KVOFFLOAD_KVO_CACHE_H

#include "kvo_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kvo_device_kind {
    KVO_DEVICE_HOST = 0, /* CPU memory is the device; streams and copies on threads */
    KVO_DEVICE_NONE = 1, /* no device: opaque groups only */
    KVO_DEVICE_FORCE_INT32 = INT32_MAX
} kvo_device_kind_t;

typedef enum kvo_policy {
    KVO_POLICY_LRU = 0,
    KVO_POLICY_ARC = 1,
    KVO_POLICY_FORCE_INT32 = INT32_MAX
} kvo_policy_t;

typedef enum kvo_progress {
    KVO_PROGRESS_THREAD = 0, /* one worker thread drives the copies */
    KVO_PROGRESS_MANUAL = 1, /* kvo_poll, kvo_op_test, kvo_op_wait drive them; no worker thread */
    KVO_PROGRESS_FORCE_INT32 = INT32_MAX
} kvo_progress_t;

typedef enum kvo_pool_setup {
    KVO_SETUP_BACKGROUND = 0, /* start returns at once; room grows chunk by chunk on a set-up thread */
    KVO_SETUP_EAGER = 1,      /* start returns when all memory is touched */
    KVO_SETUP_FORCE_INT32 = INT32_MAX
} kvo_pool_setup_t;

typedef enum kvo_log_level {
    KVO_LOG_ERROR = 0,
    KVO_LOG_WARN = 1,
    KVO_LOG_INFO = 2,
    KVO_LOG_FORCE_INT32 = INT32_MAX
} kvo_log_level_t;

/* Called on the thread that calls the library or on one of its own threads, without any lock held; must
 * not throw and must not call the cache. text is valid during the call. */
typedef void (*kvo_log_fn)(void* user, kvo_log_level_t level, const char* text);

typedef struct kvo_config_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint64_t budget_bytes;        /* everything the cache may hold: slots, index, ghosts, records. Required */
    uint64_t max_bytes;           /* upper end for kvo_cache_resize; default: budget_bytes */
    uint32_t block_tokens;        /* tokens a block; required, 1..65536 */
    uint32_t device;              /* kvo_device_kind_t */
    uint32_t policy;              /* kvo_policy_t */
    uint32_t progress;            /* kvo_progress_t */
    uint32_t setup;               /* kvo_pool_setup_t */
    uint32_t max_ops;             /* accepted ops whose completion is not taken yet; default 1024 */
    uint32_t max_inflight_blocks; /* device blocks of all accepted ops; default 65536 */
    uint32_t max_tickets;         /* tickets and reservations held at once; default 1024 */
    uint64_t max_pinned_bytes;    /* slots that tickets may pin; default half of the slots */
    uint32_t max_seqs;            /* sequences open at once (sequence level); default 1024 */
    uint32_t host_share;          /* processes like this one on the machine; default 1 */
    uint64_t max_seq_tokens;      /* tokens of all open sequences; default 2^20 */
    uint64_t max_extra_bytes;     /* bytes of salts and extras kept for the exact check; default 1 MiB */
    const void* fingerprint;      /* weights, dtype, layout: enters every key of the sequence level */
    uint64_t fingerprint_bytes;   /* 0..4096 */
    uint64_t hash_seed;           /* enters every key of the sequence level; default 0 */
    uint64_t window_bytes;        /* bytes in flight per direction; default: what drains in 80 us (host device: 240), at most 4 MiB */
    uint64_t store_bytes_per_s;   /* token bucket for stores; default: no limit */
    uint64_t event_ring;          /* events kept for kvo_events_poll; default 0 = no events */
    uint32_t huge_pages;          /* 1: ask for transparent huge pages, 0: don't; default 1 */
    uint32_t prefault_threads;    /* default: min(4, CPUs) */
    int32_t numa_node;            /* bind the pool; -1 (default): leave it to the system */
    uint32_t reserved;
    kvo_log_fn log;               /* NULL: warnings go nowhere */
    void* log_user;
} kvo_config_t;

/* A macro and a function that fill the defaults; both give the same bytes. */
#define KVO_CONFIG_INIT                                                                             \
    {                                                                                               \
        (uint32_t)sizeof(kvo_config_t), KVO_API_VERSION, 0, KVO_DEFAULT_U64, 0, KVO_DEVICE_HOST,    \
            KVO_POLICY_LRU, KVO_PROGRESS_THREAD, KVO_SETUP_BACKGROUND, KVO_DEFAULT_U32,             \
            KVO_DEFAULT_U32, KVO_DEFAULT_U32, KVO_DEFAULT_U64, KVO_DEFAULT_U32, KVO_DEFAULT_U32,    \
            KVO_DEFAULT_U64, KVO_DEFAULT_U64, NULL, 0, 0, KVO_DEFAULT_U64, KVO_DEFAULT_U64, 0,      \
            KVO_DEFAULT_U32, KVO_DEFAULT_U32, -1, 0, NULL, NULL                                     \
    }
KVO_API void kvo_config_init(kvo_config_t* config) KVO_NOEXCEPT;

/* Checks the budget against the machine's available memory and the cgroup limits (v1, v2), divided by
 * host_share, and opens an empty cache. Nothing large is allocated yet.
 * Returns KVO_OK, KVO_E_ARGUMENT, KVO_E_STRUCT, KVO_E_BUDGET, KVO_E_MEMORY, KVO_E_DEVICE. */
KVO_API kvo_status_t kvo_cache_create(const kvo_config_t* config, kvo_cache_t** out) KVO_NOEXCEPT;

typedef enum kvo_group_kind {
    KVO_GROUP_FULL = 0,   /* full attention: every block of the prefix is needed */
    KVO_GROUP_OPAQUE = 1, /* no device parts; the engine reads and writes the slot itself */
    KVO_GROUP_FORCE_INT32 = INT32_MAX
} kvo_group_kind_t;

/* Where device block d of this part lies: `rows` pieces of row_bytes at
 * base + d * block_stride + r * row_pitch. rows = 1 is the plain contiguous case (row_pitch unused). */
typedef struct kvo_part_t {
    void* base;
    uint64_t block_stride; /* bytes from one device block to the next */
    uint64_t row_bytes;
    uint64_t row_pitch;
    uint32_t rows;
    uint32_t reserved;
} kvo_part_t;

typedef struct kvo_group_config_t {
    uint32_t struct_size;
    uint32_t api_version;
    const char* name;             /* for messages and metrics; copied; NULL: "group<N>" */
    uint32_t kind;                /* kvo_group_kind_t */
    uint32_t device_block_tokens; /* divides block_tokens; default: block_tokens */
    uint32_t n_device_blocks;     /* ids are 0..n_device_blocks-1; 0 for opaque groups */
    uint32_t n_parts;             /* 1..1024; 0 for opaque groups */
    const kvo_part_t* parts;      /* copied */
    uint64_t opaque_bytes;        /* slot size of an opaque group; 0 otherwise */
    uint32_t lag_tokens;          /* data of a token is complete this many tokens later (draft models) */
    uint32_t reserved;
} kvo_group_config_t;

#define KVO_GROUP_CONFIG_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(kvo_group_config_t), KVO_API_VERSION, NULL, KVO_GROUP_FULL,               \
            KVO_DEFAULT_U32, 0, 0, NULL, 0, 0, 0                                                   \
    }
KVO_API void kvo_group_config_init(kvo_group_config_t* config) KVO_NOEXCEPT;

/* Adds a group before start; *group gets its number (0, 1, ...; at most 8 groups). The device memory of
 * the parts must stay until kvo_group_detach or kvo_cache_shutdown. Parts must not overlap, neither each
 * other nor those of another group. Returns also KVO_E_LAYOUT, KVO_E_RANGE, KVO_E_STATE. */
KVO_API kvo_status_t kvo_register_group(kvo_cache_t* cache, const kvo_group_config_t* config,
                                        uint32_t* group) KVO_NOEXCEPT;

/* Fixes index, ghosts, records and slots inside the budget and starts the threads. KVO_E_BUDGET with the
 * numbers when not one block fits. Blocks while memory is touched if setup is KVO_SETUP_EAGER. */
KVO_API kvo_status_t kvo_cache_start(kvo_cache_t* cache) KVO_NOEXCEPT;

/* Stops intake (KVO_E_STATE from then on), cancels what is not queued, waits up to timeout_ns for the
 * rest. All completions stay pollable. KVO_E_TIMEOUT: call again. */
KVO_API kvo_status_t kvo_cache_shutdown(kvo_cache_t* cache, uint64_t timeout_ns) KVO_NOEXCEPT;

#define KVO_DESTROY_DISCARD 1u /* drop completions not taken, tickets, reservations, views, sequences */

/* Frees everything. KVO_E_BUSY with the counts, and nothing is freed, while something is unpolled, pinned,
 * viewed or reserved and KVO_DESTROY_DISCARD is not given. Copies in flight are waited for either way.
 * cache NULL: KVO_OK. */
KVO_API kvo_status_t kvo_cache_destroy(kvo_cache_t* cache, uint32_t flags) KVO_NOEXCEPT;

/* Asks for another budget, up to max_bytes. Growing touches memory in the background; shrinking evicts
 * (children before parents) and gives pages back. kvo_capacity tells how far it is.
 * Returns KVO_OK, KVO_E_BUDGET, KVO_E_RANGE, KVO_E_STATE. */
KVO_API kvo_status_t kvo_cache_resize(kvo_cache_t* cache, uint64_t budget_bytes) KVO_NOEXCEPT;

typedef struct kvo_capacity_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint64_t blocks_now;     /* blocks that can be resident now */
    uint64_t blocks_target;  /* blocks once set-up or resize is done */
    uint64_t block_bytes;    /* host bytes of one block over all groups */
    uint64_t metadata_bytes; /* index, ghosts, records, tokens kept: inside the budget */
    uint64_t budget_bytes;   /* as asked */
} kvo_capacity_t;
#define KVO_CAPACITY_INIT { (uint32_t)sizeof(kvo_capacity_t), KVO_API_VERSION, 0, 0, 0, 0, 0 }
KVO_API kvo_status_t kvo_capacity(kvo_cache_t* cache, kvo_capacity_t* out) KVO_NOEXCEPT;

/* detach: the device pool of this group goes away (moves, sleeps). Unqueued copies end as
 * KVO_E_DROPPED, queued ones are waited for; host contents stay. Submits that name the group answer
 * KVO_E_STATE until attach gives the same layout at new base addresses. */
KVO_API kvo_status_t kvo_group_detach(kvo_cache_t* cache, uint32_t group) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_group_attach(kvo_cache_t* cache, uint32_t group, const kvo_part_t* parts,
                                      uint32_t n_parts) KVO_NOEXCEPT;

/* Waits until no accepted op is unfinished: no copy touches the device. KVO_E_TIMEOUT otherwise. */
KVO_API kvo_status_t kvo_quiesce(kvo_cache_t* cache, uint64_t timeout_ns) KVO_NOEXCEPT;

/* Forgets everything, for changed weights: stores accepted before never become visible, loads accepted
 * before end as KVO_E_DROPPED, tickets of before go stale (viewed ones can only be released), reservations
 * can only be aborted (a commit ends as KVO_E_DROPPED). Never blocks. */
KVO_API kvo_status_t kvo_reset(kvo_cache_t* cache) KVO_NOEXCEPT;

/* Bracket around the engine's graph capture: in between the set-up thread makes no device call. */
KVO_API kvo_status_t kvo_setup_pause(kvo_cache_t* cache) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_setup_resume(kvo_cache_t* cache) KVO_NOEXCEPT;

typedef struct kvo_ns_options_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint32_t scrub; /* 1: zero the bytes of a block at the end of its life */
    uint32_t reserved;
} kvo_ns_options_t;
#define KVO_NS_OPTIONS_INIT { (uint32_t)sizeof(kvo_ns_options_t), KVO_API_VERSION, 0, 0 }

/* Opens (or finds) the namespace of this name: blocks are reused only inside one namespace. name: 0..255
 * bytes, compared whole; "" is the default namespace. options NULL: defaults; options of a namespace that
 * is already open must be the same. At most 65535 namespaces. */
KVO_API kvo_status_t kvo_ns_open(kvo_cache_t* cache, const char* name, const kvo_ns_options_t* options,
                                 kvo_ns_t* out) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

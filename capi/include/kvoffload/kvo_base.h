/* kvoffload C ABI, part 1: words that every other part uses: status codes, handles, keys, block lists.
 *
 * Plain data only; nothing here has a lifetime of its own. C99 and later, C++17 and later.
 * Rules of the whole interface:
 *  - every function that can fail returns kvo_status_t; 0 is success, negative is an error whose hundred
 *    tells how far the damage reaches (argument, state, capacity, one transfer, the device, the library);
 *  - after a failing call kvo_last_error() gives one line of text with numbers, for this thread;
 *  - structs that may grow start with struct_size and api_version; fill them with their INIT macro or
 *    their kvo_*_init function, then change fields; reserved fields must be zero;
 *  - a stream is the engine's native handle as void*; NULL, 1 and 2 keep their CUDA meaning. */
#ifndef KVOFFLOAD_KVO_BASE_H
#define KVOFFLOAD_KVO_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define KVO_NOEXCEPT noexcept
#else
#define KVO_NOEXCEPT
#endif

#if defined(__GNUC__)
#define KVO_API __attribute__((visibility("default")))
#else
#define KVO_API
#endif

/* Version of this header. The structs carry it, so that a newer library knows what an older caller meant. */
#define KVO_VERSION_MAJOR 0
#define KVO_VERSION_MINOR 1
#define KVO_VERSION_PATCH 0
#define KVO_API_VERSION 1u

/* "Use the default" in fields where zero is a legal value of its own. */
#define KVO_DEFAULT_U32 UINT32_MAX
#define KVO_DEFAULT_U64 UINT64_MAX
/* A hole in a block list: this sequence has no such device block. */
#define KVO_NO_BLOCK UINT32_MAX
/* Wait without end. */
#define KVO_FOREVER UINT64_MAX
/* Stream argument: the caller vouches that nothing queued anywhere touches the blocks of this call. */
#define KVO_STREAM_IDLE ((void*)(intptr_t)-1)

typedef enum kvo_status {
    KVO_OK = 0,
    /* -1xx argument: this call only; nothing changed. */
    KVO_E_ARGUMENT = -101,    /* NULL, zero, overlap, unknown flag, ... */
    KVO_E_STRUCT = -102,      /* struct_size or api_version not understood */
    KVO_E_HANDLE = -103,      /* stale, foreign or already released handle */
    KVO_E_RANGE = -104,       /* block id, index or count outside its range */
    KVO_E_LAYOUT = -105,      /* parts misaligned or overlapping, stride smaller than the part */
    KVO_E_UNSUPPORTED = -106, /* known, but not on this device or in this configuration */
    /* -2xx state: right call, wrong moment; nothing changed. */
    KVO_E_STATE = -201,      /* before start, after shutdown, twice */
    KVO_E_BUSY = -202,       /* something is still in use; the message has the counts */
    KVO_E_FORKED = -203,     /* the process is a fork of the one that created the cache */
    KVO_E_CAPTURING = -204,  /* the stream is being captured into a graph */
    KVO_E_NOT_READY = -205,  /* not finished yet; ask again */
    KVO_E_NOT_QUEUED = -206, /* KVO_WAIT_TRY and pieces are not queued yet */
    KVO_E_TIMEOUT = -207,    /* the given time is over */
    /* -3xx capacity: come back later or with less. */
    KVO_E_FULL = -301,        /* every block that could leave is pinned */
    KVO_E_OPS_FULL = -302,    /* max_ops records, or the in-flight block records, are in use */
    KVO_E_BUDGET = -303,      /* does not fit the budget, or the budget does not fit the machine */
    KVO_E_MEMORY = -304,      /* the system gave no memory */
    KVO_E_PINNED_FULL = -305, /* max_pinned_bytes or the ticket room is used up */
    /* -4xx transfer: this operation only; the blocks named in the completion are not usable. */
    KVO_E_TRANSFER = -401,   /* a copy failed */
    KVO_E_CANCELLED = -402,  /* kvo_op_cancel, kvo_cache_shutdown */
    KVO_E_DEADLINE = -403,   /* the deadline came before the copy was queued */
    KVO_E_DEPENDENCY = -404, /* a load that this store depends on failed */
    KVO_E_DROPPED = -405,    /* withdrawn by fence, purge, reset or detach */
    /* -5xx device: all operations of this cache. */
    KVO_E_DEVICE = -501,      /* no such device, or no driver */
    KVO_E_DEVICE_LOST = -502, /* the device context is dead */
    /* -6xx the library itself. */
    KVO_E_INTERNAL = -601,
    KVO_STATUS_FORCE_INT32 = INT32_MAX
} kvo_status_t;

/* A cache. The pointer value is a name, never an address: a destroyed or foreign one is answered with
 * KVO_E_HANDLE, not with a crash. */
typedef struct kvo_cache kvo_cache_t;

/* Names of things inside a cache. value 0 is "none". A value is never used twice. */
typedef struct kvo_op_t { uint64_t value; } kvo_op_t;
typedef struct kvo_ticket_t { uint64_t value; } kvo_ticket_t;
typedef struct kvo_reservation_t { uint64_t value; } kvo_reservation_t;
typedef struct kvo_seq_t { uint64_t value; } kvo_seq_t;
/* value 0 is the default namespace, which is always open. */
typedef struct kvo_ns_t { uint64_t value; } kvo_ns_t;

/* The identity of one block and of everything before it, compared whole. Shorter keys: zero padded. */
typedef struct kvo_key_t { uint8_t bytes[32]; } kvo_key_t;

/* Device blocks of one group, in token order: n ids, each below the group's n_device_blocks or
 * KVO_NO_BLOCK. One host block stands for block_tokens / device_block_tokens ids. */
typedef struct kvo_blocks_t {
    uint32_t group;
    uint32_t n;
    const uint32_t* ids;
} kvo_blocks_t;

/* One line about the last failing call of this thread; "" if none. Valid until the next call of this
 * thread. Any thread. Never blocks, never allocates. */
KVO_API const char* kvo_last_error(void) KVO_NOEXCEPT;
/* The name of a status, such as "KVO_E_FULL"; "unknown status" for others. Static storage. */
KVO_API const char* kvo_status_name(kvo_status_t status) KVO_NOEXCEPT;
/* Version of the library that is loaded: major * 10000 + minor * 100 + patch. */
KVO_API uint32_t kvo_version(void) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

/* kvoffload C ABI, part 4: the sequence level, the hooks of a server.
 *
 * The library turns tokens into blocks and keys, checks tokens and extras exactly, and keeps the order
 * between what a sequence loads and what it stores. Hooks of one sequence: one thread at a time; those of
 * different sequences: any threads. None blocks, none allocates after kvo_cache_start.
 *
 *   begin -> [extras] -> lookup -> prefill (load) -> prefilled (after each chunk) -> decode ... -> end */
#ifndef KVOFFLOAD_KVO_SEQ_H
#define KVOFFLOAD_KVO_SEQ_H

#include "kvo_block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KVO_SEQ_NO_LOAD 1u    /* never answer with hits */
#define KVO_SEQ_NO_STORE 2u   /* never store */
#define KVO_SEQ_PROMPT_ONLY 4u /* store prompt blocks only */

typedef struct kvo_seq_options_t {
    uint32_t struct_size;
    uint32_t api_version;
    const void* salt;         /* enters every key of the sequence; copied, kept for the exact check */
    uint64_t salt_bytes;      /* 0..4096 */
    uint64_t pending_deadline_ns; /* as kvo_match_options_t */
    uint32_t flags;           /* KVO_SEQ_* */
    uint32_t max_store_tokens; /* store at most the blocks inside the first N tokens; default: all */
} kvo_seq_options_t;
#define KVO_SEQ_OPTIONS_INIT { (uint32_t)sizeof(kvo_seq_options_t), KVO_API_VERSION, NULL, 0, KVO_DEFAULT_U64, 0, KVO_DEFAULT_U32 }

KVO_API kvo_status_t kvo_seq_begin(kvo_cache_t* cache, kvo_ns_t ns, const kvo_seq_options_t* options,
                                   kvo_seq_t* out) KVO_NOEXCEPT;

/* Content that tokens do not show (images, adapters): it enters the key of every block that overlaps
 * tokens [token_begin, token_begin + token_count) and is compared like tokens. n 0 (bytes may be NULL): there
 * is such content but no identity for it: nothing at or after token_begin is matched or stored. Before
 * token token_begin is given to lookup or decode; in rising token_begin, those with the same one in the
 * order in which they shall enter keys. Giving one again changes nothing. Rewind and preempt keep extras,
 * a fork at n_tokens has those with token_begin < n_tokens. */
KVO_API kvo_status_t kvo_seq_extras(kvo_cache_t* cache, kvo_seq_t seq, uint32_t token_begin,
                                    uint32_t token_count, const void* bytes, uint64_t n) KVO_NOEXCEPT;

typedef enum kvo_lookup_state {
    KVO_LOOKUP_MISS = 0,    /* nothing beyond n_local */
    KVO_LOOKUP_READY = 1,   /* *n_tokens can be loaded now */
    KVO_LOOKUP_PENDING = 2, /* more than *n_tokens is on its way: ask again, or go on with these */
    KVO_LOOKUP_FORCE_INT32 = INT32_MAX
} kvo_lookup_state_t;

/* The whole prompt, before device blocks exist. n_local: leading tokens the device holds already. Answers
 * how many tokens from 0 on (n_local included, always whole blocks beyond it, always at least one prompt
 * token short of n) can be had without computing. Hashes once, pins what it found, may be repeated (with
 * the same tokens, or more of them); pending blocks are waited for pending_deadline_ns after the first time
 * the same question was asked. n_local tokens must be good by now: not the target of a load, of whatever
 * sequence, that is still running. The hit is dropped by end, preempt, a lookup that finds less, or once
 * more than the local tokens are computed. A cache with an opaque group matches only blocks whose opaque
 * bytes the engine has committed under kvo_seq_key. */
KVO_API kvo_status_t kvo_seq_lookup(kvo_cache_t* cache, kvo_seq_t seq, const uint32_t* tokens, uint32_t n,
                                    uint32_t n_local, uint32_t* n_tokens, kvo_lookup_state_t* state) KVO_NOEXCEPT;

/* Loads the blocks of tokens [n_local, n_tokens) of the last lookup; n_tokens a multiple of block_tokens,
 * at most what lookup said. blocks: the block table of the sequence from token 0 on, one list per device
 * group. KVO_E_DROPPED when blocks have left since the lookup: look up again, or compute. Nothing to load:
 * KVO_OK and *op is {0}.
 * Afterwards the pins of the lookup are the op's. The op is a load as in kvo_load; when it fails, call
 * kvo_seq_rewind to the first bad block before going on: until then nothing of this sequence is stored. */
KVO_API kvo_status_t kvo_seq_prefill(kvo_cache_t* cache, kvo_seq_t seq, const kvo_blocks_t* blocks,
                                     uint32_t n_groups, uint32_t n_tokens, void* stream,
                                     const kvo_load_options_t* options, kvo_op_t* op) KVO_NOEXCEPT;

/* After every prefill chunk: the KV of the first n_computed tokens is written by work already queued on
 * `stream` (or was loaded or local). Stores whole new blocks, detached. */
KVO_API kvo_status_t kvo_seq_prefilled(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_computed,
                                       const kvo_blocks_t* blocks, uint32_t n_groups, void* stream) KVO_NOEXCEPT;

/* After a decode step: new_tokens are appended to the sequence; n_computed: accepted tokens whose KV is
 * written by work already queued on `stream` (usually all but the newest). A block is stored only when all
 * its tokens are known and computed. */
KVO_API kvo_status_t kvo_seq_decode(kvo_cache_t* cache, kvo_seq_t seq, const uint32_t* new_tokens,
                                    uint32_t n_new, uint32_t n_computed, const kvo_blocks_t* blocks,
                                    uint32_t n_groups, void* stream) KVO_NOEXCEPT;

typedef struct kvo_decode_item_t {
    kvo_seq_t seq;
    const uint32_t* new_tokens;
    uint32_t n_new;
    uint32_t n_computed;
    const kvo_blocks_t* blocks;
    uint32_t n_groups;
    int32_t status; /* out: kvo_status_t of this item */
} kvo_decode_item_t;

/* kvo_seq_decode for a whole batch, with one event on `stream` for all its stores. Returns KVO_OK when every item did; else the status of
 * the first that did not, the others are done all the same. */
KVO_API kvo_status_t kvo_seq_decode_batch(kvo_cache_t* cache, kvo_decode_item_t* items, uint32_t n,
                                          void* stream) KVO_NOEXCEPT;

/* Rejected speculation, or recompute after a failed load: the sequence has n_tokens tokens from now on;
 * device blocks beyond will be overwritten by work queued on `stream` after this call. With
 * KVO_STREAM_IDLE, or while the device refuses events, KVO_E_NOT_READY as for kvo_fence: call again before
 * anything is written. Device blocks that a fork has shared: kvo_fence them before they are overwritten,
 * stores of the other sequence may still read them. */
KVO_API kvo_status_t kvo_seq_rewind(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_tokens, void* stream) KVO_NOEXCEPT;
/* A second sequence with the first n_tokens tokens of this one. */
KVO_API kvo_status_t kvo_seq_fork(kvo_cache_t* cache, kvo_seq_t seq, uint32_t n_tokens, kvo_seq_t* out) KVO_NOEXCEPT;
/* The engine takes the device blocks away but will come back: drops pins, keeps tokens and keys; starts
 * again with lookup. Fence the blocks when they are handed out again. */
KVO_API kvo_status_t kvo_seq_preempt(kvo_cache_t* cache, kvo_seq_t seq) KVO_NOEXCEPT;
/* Drops pins and tokens. Stores already accepted go on; fence the device blocks when they are handed out
 * again. */
KVO_API kvo_status_t kvo_seq_end(kvo_cache_t* cache, kvo_seq_t seq) KVO_NOEXCEPT;

/* Tells how many tokens the library knows for this sequence, how many of its leading whole blocks are in
 * the cache or were on their way there at the last store, and how many prompt tokens came from the last finished load. */
typedef struct kvo_seq_info_t {
    uint32_t struct_size;
    uint32_t api_version;
    uint32_t n_tokens;
    uint32_t n_stored_blocks;
    uint32_t n_loaded_tokens;
    uint32_t poisoned_from; /* first token not to be trusted after a failed load; UINT32_MAX: none */
} kvo_seq_info_t;
#define KVO_SEQ_INFO_INIT { (uint32_t)sizeof(kvo_seq_info_t), KVO_API_VERSION, 0, 0, 0, 0 }
KVO_API kvo_status_t kvo_seq_info(kvo_cache_t* cache, kvo_seq_t seq, kvo_seq_info_t* out) KVO_NOEXCEPT;
/* Key of block `index` of this sequence. KVO_E_RANGE unless all its tokens are known and lie before content
 * without identity. The key depends on nothing but hash_seed, block_tokens, fingerprint, namespace name, salt,
 * the tokens up to the end of the block, and the extras that begin before it: the same in any process, on any
 * machine. */
KVO_API kvo_status_t kvo_seq_key(kvo_cache_t* cache, kvo_seq_t seq, uint32_t index, kvo_key_t* out) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

// Keys of the sequence level: 32 bytes that stand for a block's tokens, its extras and everything
// before it, the same on any machine. Keys of the same input never change: caches in other
// processes may hold them. Not thread-safe; a maker lives on the stack of one call.
//
// A key is hashed from a message without padding. All integers are unsigned (but for one) and
// little endian, "bytes" stand as they are, without a closing zero:
//
//   root message, one per sequence:
//     24 bytes  "kvoffload sequence key 1"
//     u64       hash_seed of the cache
//     u32       block_tokens of the cache
//     u64, then that many bytes: fingerprint of the cache
//     u64, then that many bytes: name of the namespace
//     u64, then that many bytes: salt of the sequence (none: length 0)
//   block message, block i of the sequence (tokens [i * block_tokens, (i + 1) * block_tokens)):
//     32 bytes  key of block i - 1; for block 0, the key of the root message
//     u32 each  the block_tokens tokens
//     u32       number of extras that share a token with the block, also those that begin before it
//     and for each of them, in the order in which they were given (an extra given again, with the
//     same begin, count and bytes, is the same extra):
//       u32     first shared token, counted from the block's first token
//       u32     number of shared tokens
//       i64     begin of the extra, counted from the block's first token: negative if before it
//       u32     tokens the extra covers in all
//       u64, then that many bytes: its content, the whole of it in each block
//
// The first 16 bytes of the key are XXH3-128 of the message with the seed 0x6B766F2D6B65792D, the
// last 16 the same with the seed 0x9E3779B97F4A7C15, each in canonical form (one big-endian
// number of 128 bits). Blocks that are not full have no key, nor do those that reach beyond the begin of
// content without identity.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "kvoffload/kvo_base.h"
#include "sequence/context_store.hpp"

namespace kvo {

struct root_identity {
    uint64_t hash_seed = 0;
    uint32_t block_tokens = 0;
    std::span<const uint8_t> fingerprint;
    std::string_view ns_name;
    std::span<const uint8_t> salt;
};

struct block_identity {
    const kvo_key_t* parent = nullptr;
    std::span<const uint32_t> tokens;
    uint32_t begin = 0;               // token index of the block in its sequence
    context_id context = kNoContext;  // of the sequence up to the end of the block
};

class key_maker {
public:
    key_maker();
    kvo_key_t root(const root_identity& of);
    // contexts: where of.context and those before it are kept.
    kvo_key_t block(const block_identity& of, const context_store& contexts);

private:
    void start();
    void put(const void* bytes, uint64_t n);
    void put_u32(uint32_t value);
    void put_u64(uint64_t value);
    void put_sized(const void* bytes, uint64_t n);
    void put_tokens(std::span<const uint32_t> tokens);
    void put_extras(const block_identity& of, const context_store& contexts);
    kvo_key_t finish();

    XXH3_state_t low_, high_;
};

}  // namespace kvo

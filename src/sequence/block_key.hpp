// Keys of the sequence level: 32 bytes that stand for a block's tokens, its extras and everything
// before it. A key is XXH3-128 with two seeds over an encoding that is the same on any machine:
// integers little endian, lengths before bytes, positions relative to the block but counted from
// the sequence's start.
//
//   root key: label, hash_seed, block_tokens, fingerprint, namespace name, salt
//   block key: parent key (the root key for block 0), tokens, number of extras that overlap, and
//   for each:
//     offset and length of the overlap, begin relative to the block (signed), tokens it covers,
//     bytes
//
// Keys of the same input never change: caches in other processes may hold them. Not thread-safe; a
// maker lives on the stack of one call.
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

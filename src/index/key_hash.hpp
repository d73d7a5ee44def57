// The digest by which table and ghosts find a key. Keys may be any bytes, so all of them are mixed,
// with 64 x 64 -> 128 bit multiplications as in wyhash (Wang Yi). Not a security boundary: equality
// is always checked on the whole key. Pure function.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/ids.hpp"
#include "kvoffload/kvo_base.h"

namespace kvo {

__extension__ using uint128 = unsigned __int128;

inline uint64_t fold_product(uint64_t a, uint64_t b) noexcept {
    const uint128 product = static_cast<uint128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t key_digest(ns_id ns, const kvo_key_t& key) noexcept {
    uint64_t w[4];
    std::memcpy(w, key.bytes, sizeof w);
    const uint64_t a =
        fold_product(w[0] ^ 0xA0761D6478BD642Fu, w[1] ^ 0xE7037ED1A0B428DBu ^ raw(ns));
    const uint64_t b = fold_product(w[2] ^ 0x8EBC6AF09C88C6E3u, w[3] ^ 0x589965CC75374CC3u);
    return fold_product(a ^ 0x1D8E4E27C47D124Fu, b ^ 0xEB44ACCAB455D165u);
}

}  // namespace kvo

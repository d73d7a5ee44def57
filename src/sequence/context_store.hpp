// What tokens do not show: salts and extras, kept once however many blocks and sequences need them.
//
// A context is a salt and the extras given up to some token: one more extra makes a new context
// that follows the earlier one. Equal contexts have equal ids, compared byte for byte when they are
// made, so that an exact check of a block's extras is one comparison of numbers. Contexts are
// counted and their room is free again when nobody holds them. Fixed room, no allocation after
// place(). Thread-safe: a lock of its own, under which nothing else is called. What at() and read()
// show of a context does not change while the caller holds it.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "sequence/region.hpp"

namespace kvo {

enum class context_id : uint32_t {};
constexpr context_id kNoContext{0};  // no salt, no extras
constexpr context_id kNoContextRoom{UINT32_MAX};

class context_store {
public:
    struct node {
        context_id earlier = kNoContext;
        uint32_t begin = 0, count = 0;  // tokens an extra covers; count 0: a salt
        uint32_t max_end = 0;           // end of the farthest reaching extra up to this one
        uint32_t n_bytes = 0;
        uint32_t refs = 0;
        uint32_t hash = 0;
        uint32_t next_in_bucket = 0;
        uint32_t last_chunk = 0;
        bool is_extra() const { return count > 0; }
        uint32_t end() const { return begin + count; }
    };

    static uint64_t bytes_for(uint64_t max_bytes);
    void place(region& memory, uint64_t max_bytes);

    // The context that follows `earlier` (held by the caller); the caller holds the answer, too.
    // kNoContextRoom when bytes, which are not empty, don't fit; nothing changed then.
    context_id follow(context_id earlier, uint32_t begin, uint32_t count,
                      std::span<const uint8_t> bytes);
    void hold(context_id id);
    void let_go(context_id id);

    const node& at(context_id id) const { return nodes_[index(id)]; }
    // Calls on_bytes(data, n) for the bytes of this context, in order, in pieces.
    template <typename OnBytes>
    void read(context_id id, OnBytes on_bytes) const {
        uint32_t left = at(id).n_bytes;
        for (uint32_t c = index(id); left > 0; c = next_chunk_[c]) {
            const uint32_t n = left < kChunkBytes ? left : kChunkBytes;
            on_bytes(bytes_ + uint64_t{c} * kChunkBytes, n);
            left -= n;
        }
    }
    // The newest context on the way back from id whose extra begins before token `end`, or the
    // salt.
    context_id before(context_id id, uint32_t end) const {
        while (id != kNoContext && at(id).is_extra() && at(id).begin >= end) id = at(id).earlier;
        return id;
    }
    // Is exactly this extra among those of id that begin at or after it?
    bool has(context_id id, uint32_t begin, uint32_t count, std::span<const uint8_t> bytes) const;
    uint64_t free_bytes() const;
    uint64_t capacity_bytes() const { return uint64_t{n_chunks_} * kChunkBytes; }

private:
    static constexpr uint32_t kChunkBytes = 64;
    static constexpr uint32_t kNone = UINT32_MAX;
    static uint32_t chunks_for(uint64_t max_bytes);
    static uint32_t index(context_id id) { return static_cast<uint32_t>(id) - 1; }
    bool has_bytes(context_id id, std::span<const uint8_t> bytes) const;
    uint32_t find(uint32_t hash, context_id earlier, uint32_t begin, uint32_t count,
                  std::span<const uint8_t> bytes) const;
    uint32_t fill_chunks(std::span<const uint8_t> bytes);
    void unlink(uint32_t i);

    mutable std::mutex mutex_;
    node* nodes_ = nullptr;           // a context is named by its first chunk
    uint32_t* next_chunk_ = nullptr;  // of the same context, or of the free list
    uint32_t* buckets_ = nullptr;
    uint8_t* bytes_ = nullptr;
    uint32_t n_chunks_ = 0, n_buckets_ = 0;
    uint32_t first_free_ = kNone, n_free_ = 0;
};

}  // namespace kvo

#include "sequence/context_store.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace kvo {

namespace {

uint32_t digest(context_id earlier, uint32_t begin, uint32_t count,
                std::span<const uint8_t> bytes) {
    const uint64_t seed =
        uint64_t{static_cast<uint32_t>(earlier)} << 32 ^ uint64_t { begin } << 16 ^ count;
    const uint64_t h = XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
    return static_cast<uint32_t>(h ^ h >> 32);
}

}  // namespace

uint32_t context_store::chunks_for(uint64_t max_bytes) {
    constexpr uint64_t kMost = 1u << 31;
    return static_cast<uint32_t>(std::min(max_bytes / kChunkBytes, kMost));
}

uint64_t context_store::bytes_for(uint64_t max_bytes) {
    const uint64_t n = chunks_for(max_bytes);
    return region::bytes_for<node>(n) + region::bytes_for<uint32_t>(n) +
           region::bytes_for<uint32_t>(std::bit_ceil(n)) +
           region::bytes_for<uint8_t>(n * kChunkBytes);
}

void context_store::place(region& memory, uint64_t max_bytes) {
    n_chunks_ = chunks_for(max_bytes);
    n_buckets_ = std::bit_ceil(n_chunks_);
    nodes_ = memory.take<node>(n_chunks_);
    next_chunk_ = memory.take<uint32_t>(n_chunks_);
    buckets_ = memory.take<uint32_t>(n_buckets_);
    bytes_ = memory.take<uint8_t>(uint64_t{n_chunks_} * kChunkBytes);
    std::fill_n(buckets_, n_buckets_, kNone);
    for (uint32_t i = 0; i < n_chunks_; ++i) next_chunk_[i] = i + 1 < n_chunks_ ? i + 1 : kNone;
    first_free_ = n_chunks_ > 0 ? 0 : kNone;
    n_free_ = n_chunks_;
}

uint64_t context_store::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return uint64_t{n_free_} * kChunkBytes;
}

bool context_store::has_bytes(context_id id, std::span<const uint8_t> bytes) const {
    if (at(id).n_bytes != bytes.size()) return false;
    bool equal = true;
    const uint8_t* rest = bytes.data();
    read(id, [&](const uint8_t* data, uint32_t size) {
        equal = equal && std::memcmp(data, rest, size) == 0;
        rest += size;
    });
    return equal;
}

bool context_store::has(context_id id, uint32_t begin, uint32_t count,
                        std::span<const uint8_t> bytes) const {
    for (; id != kNoContext && at(id).is_extra() && at(id).begin >= begin; id = at(id).earlier) {
        if (at(id).begin == begin && at(id).count == count && has_bytes(id, bytes)) return true;
    }
    return false;
}

uint32_t context_store::find(uint32_t hash, context_id earlier, uint32_t begin, uint32_t count,
                             std::span<const uint8_t> bytes) const {
    for (uint32_t i = buckets_[hash & (n_buckets_ - 1)]; i != kNone; i = nodes_[i].next_in_bucket) {
        const node& n = nodes_[i];
        const bool may_be =
            n.hash == hash && n.earlier == earlier && n.begin == begin && n.count == count;
        if (may_be && has_bytes(context_id{i + 1}, bytes)) return i;
    }
    return kNone;
}

uint32_t context_store::fill_chunks(std::span<const uint8_t> bytes) {
    uint32_t last = kNone;
    while (!bytes.empty()) {
        const auto part = bytes.first(std::min<size_t>(bytes.size(), kChunkBytes));
        last = first_free_;
        first_free_ = next_chunk_[last];
        --n_free_;
        std::memcpy(bytes_ + uint64_t{last} * kChunkBytes, part.data(), part.size());
        bytes = bytes.subspan(part.size());
    }
    return last;
}

context_id context_store::follow(context_id earlier, uint32_t begin, uint32_t count,
                                 std::span<const uint8_t> bytes) {
    const uint32_t hash = digest(earlier, begin, count, bytes);
    const std::lock_guard lock(mutex_);
    if (n_chunks_ == 0 || bytes.size() > UINT32_MAX) return kNoContextRoom;
    uint32_t i = find(hash, earlier, begin, count, bytes);
    if (i != kNone) {
        ++nodes_[i].refs;
        return context_id{i + 1};
    }
    if (div_up(bytes.size(), kChunkBytes) > n_free_) return kNoContextRoom;
    i = first_free_;
    node& n = nodes_[i];
    n = node{};
    n.earlier = earlier;
    n.begin = begin;
    n.count = count;
    n.max_end = n.end();
    if (earlier != kNoContext) {
        node& e = nodes_[index(earlier)];
        n.max_end = std::max(n.max_end, e.max_end);
        ++e.refs;
    }
    n.n_bytes = static_cast<uint32_t>(bytes.size());
    n.refs = 1;
    n.hash = hash;
    n.last_chunk = fill_chunks(bytes);
    uint32_t& bucket = buckets_[hash & (n_buckets_ - 1)];
    n.next_in_bucket = bucket;
    bucket = i;
    return context_id{i + 1};
}

void context_store::hold(context_id id) {
    if (id == kNoContext) return;
    const std::lock_guard lock(mutex_);
    ++nodes_[index(id)].refs;
}

void context_store::unlink(uint32_t i) {
    uint32_t* at = &buckets_[nodes_[i].hash & (n_buckets_ - 1)];
    while (*at != i) at = &nodes_[*at].next_in_bucket;
    *at = nodes_[i].next_in_bucket;
}

void context_store::let_go(context_id id) {
    while (id != kNoContext) {
        const std::lock_guard lock(mutex_);
        node& n = nodes_[index(id)];
        if (--n.refs > 0) return;
        unlink(index(id));
        next_chunk_[n.last_chunk] = first_free_;
        first_free_ = index(id);
        n_free_ += static_cast<uint32_t>(div_up(n.n_bytes, kChunkBytes));
        id = n.earlier;  // which this one held
    }
}

}  // namespace kvo

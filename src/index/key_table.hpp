// Hash table from keys to entry numbers, in buckets of eight that fill a cache line each. A place
// holds 32 bits of the digest beside the number, so that a look-up touches the entry itself only
// when it is almost surely the right one. A full bucket overflows into the next; erasing pulls back
// what overflowed, so that nothing piles up. At most 62 % full. No allocation after construction.
// Not thread-safe.
#pragma once

#include <cstdint>

#include "base/big_vector.hpp"
#include "index/lane_mask.hpp"

namespace kvo {

class key_table {
public:
    static constexpr uint32_t kEmpty = UINT32_MAX;

    explicit key_table(uint32_t max_entries)
        : buckets_(size_for(max_entries)), n_(size_for(max_entries)) {}
    static uint64_t bytes_for(uint32_t max_entries) {
        return uint64_t{size_for(max_entries)} * sizeof(bucket);
    }

    void prefetch(uint64_t digest) const { __builtin_prefetch(&buckets_[home(tag(digest))]); }

    // The entry for which same(entry) holds among those with this tag; kEmpty when there is none.
    template <typename Same>
    uint32_t find(uint64_t digest, Same same) const {
        const uint32_t wanted = tag(digest);
        for (uint32_t b = home(wanted);; b = next(b)) {
            const bucket& at = buckets_[b];
            for (unsigned found = lanes_equal(at.tags, wanted); found != 0; found &= found - 1) {
                const uint32_t entry = at.entries[lowest_lane(found)];
                if (entry != kEmpty && same(entry)) return entry;
            }
            if (has_room(at)) return kEmpty;
        }
    }
    // Most likely find()'s answer, by the tag alone: for prefetching the entry.
    uint32_t guess(uint64_t digest) const {
        return find(digest, [](uint32_t) { return true; });
    }

    void insert(uint64_t digest, uint32_t entry) {
        uint32_t b = home(tag(digest));
        while (!has_room(buckets_[b])) b = next(b);
        put(buckets_[b], lowest_lane(lanes_equal(buckets_[b].entries, kEmpty)), tag(digest), entry);
    }

    void erase(uint64_t digest, uint32_t entry) {
        uint32_t b = home(tag(digest));
        unsigned found;
        while ((found = lanes_equal(buckets_[b].entries, entry)) == 0) b = next(b);
        const bool was_full = !has_room(buckets_[b]);
        buckets_[b].entries[lowest_lane(found)] = kEmpty;
        if (was_full) pull_back(b);
    }

private:
    static constexpr uint32_t kPlaces = 8;
    struct alignas(64) bucket {
        uint32_t tags[kPlaces] = {};
        uint32_t entries[kPlaces] = {kEmpty, kEmpty, kEmpty, kEmpty,
                                     kEmpty, kEmpty, kEmpty, kEmpty};
    };

    static uint32_t size_for(uint32_t max_entries) {
        return static_cast<uint32_t>(uint64_t{max_entries} / 5 + 2);
    }
    static uint32_t tag(uint64_t digest) { return static_cast<uint32_t>(digest >> 32); }
    // Multiply-shift onto a table of any size (Lemire 2016).
    uint32_t home(uint32_t t) const { return static_cast<uint32_t>((uint64_t{t} * n_) >> 32); }
    uint32_t next(uint32_t b) const { return b + 1 == n_ ? 0 : b + 1; }
    uint32_t distance(uint32_t from, uint32_t to) const {
        return to >= from ? to - from : to + n_ - from;
    }
    static bool has_room(const bucket& b) { return lanes_equal(b.entries, kEmpty) != 0; }
    static void put(bucket& b, unsigned lane, uint32_t t, uint32_t entry) {
        b.tags[lane] = t;
        b.entries[lane] = entry;
    }

    // Bucket `hole` was full and has room now: what lies beyond it for lack of room there moves up.
    // Beyond the first bucket with room nothing can.
    void pull_back(uint32_t hole) {
        for (uint32_t b = next(hole);; b = next(b)) {
            bucket& from = buckets_[b];
            const bool was_full = !has_room(from);
            for (unsigned lane = 0; lane < kPlaces; ++lane) {
                if (from.entries[lane] == kEmpty) continue;
                if (distance(home(from.tags[lane]), b) < distance(hole, b)) continue;
                bucket& to = buckets_[hole];
                put(to, lowest_lane(lanes_equal(to.entries, kEmpty)), from.tags[lane],
                    from.entries[lane]);
                from.entries[lane] = kEmpty;
                hole = b;
                break;
            }
            if (!was_full) return;
        }
    }

    big_vector<bucket> buckets_;
    uint32_t n_;
};

}  // namespace kvo

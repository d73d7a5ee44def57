// Open addressing from keys to entry numbers. A place holds the upper digest bits beside the number, so
// that a look-up touches the entry itself only when it is almost surely the right one. Linear probing,
// backward-shift deletion, at most 62 % full. No allocation after construction. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace kvo {

class key_table {
public:
    static constexpr uint32_t kEmpty = UINT32_MAX;

    explicit key_table(uint32_t max_entries) : places_(size_for(max_entries)) {}
    static uint64_t bytes_for(uint32_t max_entries) { return size_for(max_entries) * sizeof(place); }

    void prefetch(uint64_t digest) const { __builtin_prefetch(&places_[home(tag(digest))]); }

    // The entry for which same(entry) holds among those with this digest; kEmpty when there is none.
    template <typename Same>
    uint32_t find(uint64_t digest, Same same) const {
        const uint32_t wanted = tag(digest);
        for (uint32_t p = home(wanted);; p = next(p)) {
            const place& at = places_[p];
            if (at.entry == kEmpty) return kEmpty;
            if (at.tag == wanted && same(at.entry)) return at.entry;
        }
    }
    // First entry with this digest, unchecked: for prefetching it.
    uint32_t guess(uint64_t digest) const {
        const uint32_t wanted = tag(digest);
        for (uint32_t p = home(wanted);; p = next(p)) {
            if (places_[p].entry == kEmpty || places_[p].tag == wanted) return places_[p].entry;
        }
    }
    void insert(uint64_t digest, uint32_t entry) {
        const uint32_t t = tag(digest);
        uint32_t p = home(t);
        while (places_[p].entry != kEmpty) p = next(p);
        places_[p] = {t, entry};
    }
    void erase(uint64_t digest, uint32_t entry) {
        uint32_t hole = home(tag(digest));
        while (places_[hole].entry != entry) hole = next(hole);
        for (uint32_t p = next(hole); places_[p].entry != kEmpty; p = next(p)) {
            if (distance(home(places_[p].tag), p) < distance(hole, p)) continue;
            places_[hole] = places_[p];
            hole = p;
        }
        places_[hole].entry = kEmpty;
    }

private:
    struct place {
        uint32_t tag = 0;
        uint32_t entry = kEmpty;
    };

    static uint64_t size_for(uint32_t max_entries) { return uint64_t{max_entries} * 8 / 5 + 8; }
    static uint32_t tag(uint64_t digest) { return static_cast<uint32_t>(digest >> 32); }
    // Multiply-shift onto a table of any size (Lemire 2016).
    uint32_t home(uint32_t t) const {
        return static_cast<uint32_t>((uint64_t{t} * places_.size()) >> 32);
    }
    uint32_t next(uint32_t p) const { return p + 1 == places_.size() ? 0 : p + 1; }
    uint32_t distance(uint32_t from, uint32_t to) const {
        return to >= from ? to - from : to + static_cast<uint32_t>(places_.size()) - from;
    }

    std::vector<place> places_;
};

}  // namespace kvo

// Fixed pools of records behind public handles. A handle carries the tag of its cache, the place
// and the generation of the place, so that a stale, foreign or twice released one is refused and
// never hits a later record. Not thread-safe (cache lock). No allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace kvo {

constexpr uint32_t kHandleIndexBits = 20;
constexpr uint32_t kMaxHandles = (1u << kHandleIndexBits) - 1;
constexpr uint32_t kCacheTags = 1u << 12;  // tags 1..4095; 0 is no cache

constexpr uint64_t make_handle(uint32_t tag, uint32_t index, uint32_t generation) noexcept {
    return uint64_t{tag} << 52 | uint64_t{index} << 32 | generation;
}
constexpr uint32_t handle_index(uint64_t handle) noexcept {
    return static_cast<uint32_t>(handle >> 32) & kMaxHandles;
}

template <typename Record>
class handle_pool {
public:
    static uint64_t bytes_for(uint32_t n) { return uint64_t{n} * sizeof(place); }

    void reset(uint32_t n, uint32_t tag) {
        tag_ = tag;
        places_.assign(n, place{});
        for (uint32_t i = 0; i < n; ++i) places_[i].next_free = i + 1;
        first_free_ = 0;
        last_free_ = n - 1;
    }
    uint32_t n_used() const noexcept { return n_used_; }
    uint32_t size() const noexcept { return static_cast<uint32_t>(places_.size()); }

    // A new record, value-initialised; null when all are in use.
    Record* take(uint64_t* handle) {
        if (n_used_ >= places_.size()) return nullptr;
        const uint32_t i = first_free_;
        place& p = places_[i];
        first_free_ = p.next_free;
        p.used = true;
        p.record = Record{};
        ++n_used_;
        *handle = make_handle(tag_, i, p.generation);
        return &p.record;
    }
    // Null for anything but a handle that take() gave and give() has not ended.
    Record* find(uint64_t handle) {
        const uint32_t i = handle_index(handle);
        if (i >= places_.size() || !places_[i].used) return nullptr;
        return handle == make_handle(tag_, i, places_[i].generation) ? &places_[i].record : nullptr;
    }
    void give(uint64_t handle) {
        const uint32_t i = handle_index(handle);
        place& p = places_[i];
        p.used = false;
        if (++p.generation == 0) p.generation = 1;
        // First in, first out: all places take turns, so that a generation takes long to come back.
        (n_used_ == places_.size() ? first_free_ : places_[last_free_].next_free) = i;
        last_free_ = i;
        --n_used_;
    }
    // Walking all of them: null where none is in use.
    Record* at(uint32_t i) { return places_[i].used ? &places_[i].record : nullptr; }
    uint64_t handle_at(uint32_t i) const { return make_handle(tag_, i, places_[i].generation); }

private:
    struct place {
        Record record{};
        uint32_t generation = 1;
        uint32_t next_free = 0;
        bool used = false;
    };
    std::vector<place> places_;
    uint32_t first_free_ = 0, last_free_ = 0, n_used_ = 0, tag_ = 0;
};

}  // namespace kvo

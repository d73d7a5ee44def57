#include "handles.hpp"

#include <mutex>

namespace kvo::capi {

namespace {

struct place {
    std::atomic<open_cache*> cache{nullptr};
    std::atomic<uint64_t> generation{0};
};
place places[kMostCaches];
std::mutex change;  // of places, not for look-ups

// generation << 12 | place << 4 | 8: never NULL, never aligned like an object.
constexpr uint32_t kTag = 8, kTagBits = 4, kPlaceBits = 8;

kvo_cache_t* name_of(uint32_t at, uint64_t generation) {
    const uint64_t value = generation << (kTagBits + kPlaceBits) | uint64_t{at} << kTagBits | kTag;
    return reinterpret_cast<kvo_cache_t*>(static_cast<uintptr_t>(value));
}

place* place_of(const kvo_cache_t* name) {
    const auto value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(name));
    if ((value & ((1u << kTagBits) - 1)) != kTag) return nullptr;
    place& p = places[value >> kTagBits & (kMostCaches - 1)];
    const uint64_t generation = value >> (kTagBits + kPlaceBits);
    return p.generation.load(std::memory_order_acquire) == generation ? &p : nullptr;
}

}  // namespace

open_cache* find_cache(const kvo_cache_t* name) noexcept {
    const place* p = place_of(name);
    return p == nullptr ? nullptr : p->cache.load(std::memory_order_acquire);
}

status add_cache(std::unique_ptr<open_cache> c, kvo_cache_t** name) {
    const std::lock_guard lock(change);
    for (uint32_t at = 0; at < kMostCaches; ++at) {
        place& p = places[at];
        if (p.cache.load(std::memory_order_relaxed) != nullptr) continue;
        const uint64_t generation = p.generation.load(std::memory_order_relaxed) + 1;
        p.cache.store(c.release(), std::memory_order_release);
        p.generation.store(generation, std::memory_order_release);
        *name = name_of(at, generation);
        return KVO_OK;
    }
    return fail(KVO_E_OPS_FULL, "{} caches are open in this process: destroy one first", kMostCaches);
}

std::unique_ptr<open_cache> remove_cache(const kvo_cache_t* name) noexcept {
    const std::lock_guard lock(change);
    place* p = place_of(name);
    if (p == nullptr) return nullptr;
    p->generation.fetch_add(1, std::memory_order_acq_rel);
    return std::unique_ptr<open_cache>(p->cache.exchange(nullptr, std::memory_order_acq_rel));
}

status create_cache(const kvo_config_t& config, const device_table* device, const time_source& time,
                    kvo_cache_t** out) {
    auto c = std::make_unique<open_cache>();
    status ok = cache::create(config, device, time, &c->blocks);
    if (ok == KVO_OK) ok = sequences::create(*c->blocks, &c->sequences);
    return ok == KVO_OK ? add_cache(std::move(c), out) : ok;
}

}  // namespace kvo::capi

#include "sequence/block_key.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kvo {

namespace {

constexpr std::string_view kLabel = "kvoffload sequence key 1";
constexpr uint64_t kSeedLow = 0x6B766F2D6B65792Du;  // any two that differ; fixed for good
constexpr uint64_t kSeedHigh = 0x9E3779B97F4A7C15u;

bool overlaps(const context_store::node& extra, uint32_t begin, uint32_t end) {
    return extra.is_extra() && extra.begin < end && extra.end() > begin;
}

// The newest context from `from` back that overlaps the block.
context_id next_overlap(const context_store& contexts, context_id from, uint32_t begin,
                        uint32_t end) {
    while (from != kNoContext && contexts.at(from).max_end > begin) {
        if (overlaps(contexts.at(from), begin, end)) return from;
        from = contexts.at(from).earlier;
    }
    return kNoContext;
}

}  // namespace

key_maker::key_maker() {
    XXH3_INITSTATE(&low_);
    XXH3_INITSTATE(&high_);
    start();
}

void key_maker::start() {
    XXH3_128bits_reset_withSeed(&low_, kSeedLow);
    XXH3_128bits_reset_withSeed(&high_, kSeedHigh);
}

void key_maker::put(const void* bytes, uint64_t n) {
    if (n == 0) return;
    XXH3_128bits_update(&low_, bytes, n);
    XXH3_128bits_update(&high_, bytes, n);
}

void key_maker::put_u32(uint32_t value) {
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
    put(&value, sizeof value);
}

void key_maker::put_u64(uint64_t value) {
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
    put(&value, sizeof value);
}

void key_maker::put_sized(const void* bytes, uint64_t n) {
    put_u64(n);
    put(bytes, n);
}

void key_maker::put_tokens(std::span<const uint32_t> tokens) {
    if constexpr (std::endian::native == std::endian::little) {
        put(tokens.data(), tokens.size_bytes());
    } else {
        for (const uint32_t t : tokens) put_u32(t);
    }
}

kvo_key_t key_maker::finish() {
    XXH128_canonical_t low, high;
    XXH128_canonicalFromHash(&low, XXH3_128bits_digest(&low_));
    XXH128_canonicalFromHash(&high, XXH3_128bits_digest(&high_));
    kvo_key_t key;
    std::memcpy(key.bytes, low.digest, sizeof low.digest);
    std::memcpy(key.bytes + sizeof low.digest, high.digest, sizeof high.digest);
    return key;
}

kvo_key_t key_maker::root(const root_identity& of) {
    start();
    put(kLabel.data(), kLabel.size());
    put_u64(of.hash_seed);
    put_u32(of.block_tokens);
    put_sized(of.fingerprint.data(), of.fingerprint.size());
    put_sized(of.ns_name.data(), of.ns_name.size());
    put_sized(of.salt.data(), of.salt.size());
    return finish();
}

// Extras are told in the order in which they were given. They are linked from the newest back, so
// each is looked for anew: few overlap one block.
void key_maker::put_extras(const block_identity& of, const context_store& contexts) {
    const uint32_t end = of.begin + static_cast<uint32_t>(of.tokens.size());
    constexpr uint32_t kAtOnce = 64;
    context_id found[kAtOnce];
    uint32_t n = 0;
    const auto next = [&](context_id from) { return next_overlap(contexts, from, of.begin, end); };
    const auto earlier = [&](context_id id) { return contexts.at(id).earlier; };
    for (context_id id = next(of.context); id != kNoContext; id = next(earlier(id))) ++n;
    put_u32(n);
    for (uint32_t done = 0; done < n;) {
        // The newest n - done of them, of which the oldest are told now.
        const uint32_t part = std::min(n - done, kAtOnce);
        context_id id = next(of.context);
        for (uint32_t i = 0; i < n - done - part; ++i) id = next(earlier(id));
        for (uint32_t i = part; i > 0; --i) {
            found[i - 1] = id;
            id = next(earlier(id));
        }
        for (uint32_t i = 0; i < part; ++i) {
            const context_store::node& extra = contexts.at(found[i]);
            const uint32_t from = std::max(extra.begin, of.begin);
            put_u32(from - of.begin);
            put_u32(std::min(extra.end(), end) - from);
            put_u64(static_cast<uint64_t>(int64_t{extra.begin} - int64_t{of.begin}));
            put_u32(extra.count);
            put_u64(extra.n_bytes);
            contexts.read(found[i],
                          [this](const uint8_t* data, uint32_t size) { put(data, size); });
        }
        done += part;
    }
}

kvo_key_t key_maker::block(const block_identity& of, const context_store& contexts) {
    start();
    put(of.parent->bytes, sizeof of.parent->bytes);
    put_tokens(of.tokens);
    if (of.context == kNoContext || contexts.at(of.context).max_end <= of.begin) {
        put_u32(0);
    } else {
        put_extras(of, contexts);
    }
    return finish();
}

}  // namespace kvo

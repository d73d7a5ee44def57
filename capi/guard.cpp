#include "guard.hpp"

#include "base/ids.hpp"

namespace kvo::capi {

status check_head(const char* what, const void* data, uint32_t known_bytes) {
    uint32_t head[2];
    std::memcpy(head, data, sizeof head);
    const auto [size, version] = head;
    if (size < kLeastStructBytes || size % 4 != 0) {
        return fail(KVO_E_STRUCT, "{}: struct_size is {}: fill the struct with its INIT macro", what, size);
    }
    if (version == 0) {
        return fail(KVO_E_STRUCT, "{}: api_version is 0, this library knows 1..{}", what, KVO_API_VERSION);
    }
    if (size <= known_bytes) return KVO_OK;
    constexpr uint32_t kMostStructBytes = 65536;
    const auto* bytes = static_cast<const uint8_t*>(data);
    for (uint32_t i = known_bytes; i < size && size <= kMostStructBytes; ++i) {
        if (bytes[i] == 0) continue;
        return fail(KVO_E_STRUCT, "{}: byte {} of {} is set, but this library knows only the first {} "
                                  "(api_version {} against {})",
                    what, i, size, known_bytes, version, KVO_API_VERSION);
    }
    if (size > kMostStructBytes) return fail(KVO_E_STRUCT, "{}: struct_size is {}", what, size);
    return KVO_OK;
}

status read_blocks(const kvo_blocks_t* lists, uint32_t n, std::span<const kvo_blocks_t>* out) {
    if (n > kMaxGroups) return fail(KVO_E_RANGE, "{} block lists, at most {} groups", n, kMaxGroups);
    KVO_TRY(read_list("block lists", lists, n, out));
    uint32_t seen = 0;
    for (const kvo_blocks_t& list : *out) {
        if (list.group >= kMaxGroups) {
            return fail(KVO_E_RANGE, "group {}: at most {} groups", list.group, kMaxGroups);
        }
        if ((seen >> list.group & 1) != 0) {
            return fail(KVO_E_ARGUMENT, "two block lists for group {}", list.group);
        }
        seen |= 1u << list.group;
        std::span<const uint32_t> ids;
        KVO_TRY(read_list("block ids", list.ids, list.n, &ids));
    }
    return KVO_OK;
}

}  // namespace kvo::capi

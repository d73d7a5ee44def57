// What every entry of the C interface goes through: no exception gets out, cache names are looked up,
// structs of callers are read by their own size. Any thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

#include "base/status.hpp"
#include "handles.hpp"

namespace kvo::capi {

// Runs the body of an entry. Memory that ran out and anything unexpected become a status.
template <typename Body>
kvo_status_t guarded(Body body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        std::strcpy(error_text(), "out of memory");
        return KVO_E_MEMORY;
    } catch (...) {
        std::strcpy(error_text(), "unexpected exception inside the library");
        return KVO_E_INTERNAL;
    }
}

// The same with the cache behind the name; body gets an open_cache&.
template <typename Body>
kvo_status_t with_cache(kvo_cache_t* name, Body body) noexcept {
    return guarded([&]() -> kvo_status_t {
        open_cache* c = find_cache(name);
        if (c == nullptr) {
            return fail(KVO_E_HANDLE, "{} is no open cache: never created, destroyed, or of another "
                                      "copy of the library", static_cast<const void*>(name));
        }
        if (const kvo_status_t ok = c->blocks->check_process(); ok != KVO_OK) return ok;
        return body(*c);
    });
}

// Before and after: sequences are usable only once the cache has started.
template <typename Body>
kvo_status_t with_sequences(kvo_cache_t* name, Body body) noexcept {
    return with_cache(name, [&](open_cache& c) -> kvo_status_t {
        if (!c.started) return fail(KVO_E_STATE, "the cache is not started yet: call kvo_cache_start");
        return body(*c.sequences);
    });
}

constexpr uint32_t kLeastStructBytes = 8;  // struct_size and api_version

// Checks the head of a caller's struct: size and version that this library can understand.
status check_head(const char* what, const void* data, uint32_t known_bytes);

// Reads a caller's struct over `defaults`: fields that an older, smaller struct lacks keep their default;
// bytes that a newer, larger one has beyond ours must be zero. null_is_default: NULL means all defaults.
template <typename T>
status read_struct(const char* what, const T* in, const T& defaults, bool null_is_default, T* out) {
    static_assert(std::is_trivially_copyable_v<T>);
    *out = defaults;
    if (in == nullptr) {
        if (null_is_default) return KVO_OK;
        return fail(KVO_E_ARGUMENT, "{} is NULL", what);
    }
    if (const status ok = check_head(what, in, sizeof(T)); ok != KVO_OK) return ok;
    std::memcpy(static_cast<void*>(out), in, std::min<size_t>(in->struct_size, sizeof(T)));
    out->struct_size = sizeof(T);
    out->api_version = KVO_API_VERSION;
    return KVO_OK;
}

// Prepares an answer struct: only the caller's own size is written.
template <typename T, typename Fill>
status write_struct(const char* what, T* out, Fill fill) {
    if (out == nullptr) return fail(KVO_E_ARGUMENT, "{} is NULL", what);
    if (const status ok = check_head(what, out, sizeof(T)); ok != KVO_OK) return ok;
    T full{};
    full.struct_size = sizeof(T);
    full.api_version = KVO_API_VERSION;
    const status ok = fill(&full);
    const uint32_t size = out->struct_size, version = out->api_version;
    std::memcpy(static_cast<void*>(out), &full, std::min<size_t>(size, sizeof(T)));
    out->struct_size = size;
    out->api_version = version;
    return ok;
}

inline status check_not_null(const char* what, const void* pointer) {
    return pointer != nullptr ? KVO_OK : fail(KVO_E_ARGUMENT, "{} is NULL", what);
}

inline status check_no_bits(const char* what, uint64_t value, uint64_t known) {
    if ((value & ~known) == 0) return KVO_OK;
    return fail(KVO_E_ARGUMENT, "{}: unknown bits {:#x} (known: {:#x})", what, value & ~known, known);
}

constexpr uint64_t kMostItems = INT32_MAX;  // of any list in one call

// A list of the caller as a span; n > 0 needs a pointer.
template <typename T>
status read_list(const char* what, const T* items, uint64_t n, std::span<const T>* out) {
    if (n > kMostItems) return fail(KVO_E_RANGE, "{}: {} items, at most {}", what, n, kMostItems);
    if (n > 0 && items == nullptr) return fail(KVO_E_ARGUMENT, "{} is NULL with {} items", what, n);
    *out = {items, static_cast<size_t>(n)};
    return KVO_OK;
}

// Block lists: at most one per group, ids where n > 0.
status read_blocks(const kvo_blocks_t* lists, uint32_t n, std::span<const kvo_blocks_t>* out);

}  // namespace kvo::capi

// Leaves the entry with the status when it is not KVO_OK.
#define KVO_TRY(expression)                                                  \
    do {                                                                     \
        if (const kvo_status_t kvo_try = (expression); kvo_try != KVO_OK) {  \
            return kvo_try;                                                  \
        }                                                                    \
    } while (false)

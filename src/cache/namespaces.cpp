#include "cache/namespaces.hpp"

#include <algorithm>

#include "cache/config.hpp"
#include "cache/handles.hpp"

namespace kvo {

namespace {

constexpr uint64_t kMaxNamespaces = 65535;
constexpr uint64_t kMaxNameBytes = 255;
constexpr uint64_t kUsualNameBytes = 48;

// One namespace for every 128 KiB of budget: less than a thousandth of it.
uint64_t room_for(uint64_t budget_bytes) {
    return std::clamp<uint64_t>(budget_bytes / (128 * 1024), 64, kMaxNamespaces) + 1;
}

uint32_t hash(std::string_view name) {
    uint32_t h = 2166136261u;  // FNV-1a
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return h;
}

}  // namespace

uint64_t namespace_table::bytes_for(uint64_t budget_bytes) {
    return room_for(budget_bytes) * (sizeof(ns_record) + kUsualNameBytes + sizeof(uint32_t));
}

namespace_table::namespace_table(uint64_t budget_bytes, uint32_t cache_tag)
    : buckets_(room_for(budget_bytes), UINT32_MAX), tag_(cache_tag) {
    records_.reserve(room_for(budget_bytes));
    names_.reserve(room_for(budget_bytes) * kUsualNameBytes);
    records_.push_back({});
}

status namespace_table::open(std::string_view name, const kvo_ns_options_t& options,
                             kvo_ns_t* out) {
    const status s =
        check_struct("kvo_ns_options_t", options.struct_size, options.api_version, sizeof(options));
    if (s != KVO_OK) return s;
    if (name.size() > kMaxNameBytes) {
        return fail(KVO_E_ARGUMENT, "the namespace's name has {} bytes; at most {}", name.size(),
                    kMaxNameBytes);
    }
    if (options.scrub > 1 || options.reserved != 0) {
        return fail(KVO_E_ARGUMENT, "scrub {} (0 or 1), reserved {} (0)", options.scrub,
                    options.reserved);
    }
    uint32_t found = name.empty() ? 0 : buckets_[hash(name) % buckets_.size()];
    while (found != UINT32_MAX && this->name(ns_id{found}) != name)
        found = records_[found].next_in_bucket;
    if (found != UINT32_MAX) {
        if (records_[found].scrub != (options.scrub == 1)) {
            return fail(KVO_E_ARGUMENT, "namespace '{}' is open with scrub {}, asked is {}", name,
                        records_[found].scrub ? 1 : 0, options.scrub);
        }
        *out = handle(ns_id{found});
        return KVO_OK;
    }
    if (records_.size() == records_.capacity() || names_.size() + name.size() > names_.capacity()) {
        return fail(KVO_E_BUDGET,
                    "no room for another namespace: {} are open (room for {}), their names take {} "
                    "of {} bytes; a "
                    "larger budget_bytes brings more room",
                    records_.size(), records_.capacity(), names_.size(), names_.capacity());
    }
    ns_record r;
    r.name_begin = static_cast<uint32_t>(names_.size());
    r.name_bytes = static_cast<uint16_t>(name.size());
    r.scrub = options.scrub == 1;
    names_.insert(names_.end(), name.begin(), name.end());
    uint32_t& bucket = buckets_[hash(name) % buckets_.size()];
    r.next_in_bucket = bucket;
    bucket = size();
    records_.push_back(r);
    *out = handle(ns_id{bucket});
    return KVO_OK;
}

status namespace_table::find(kvo_ns_t ns, ns_id* out) const {
    const uint32_t index = handle_index(ns.value);
    if (ns.value != 0 &&
        (index == 0 || index >= size() || ns.value != handle(ns_id{index}).value)) {
        return fail(KVO_E_HANDLE, "namespace {:#x} is not one of this cache", ns.value);
    }
    *out = ns_id{index};
    return KVO_OK;
}

kvo_ns_t namespace_table::handle(ns_id ns) const {
    return {raw(ns) == 0 ? 0 : make_handle(tag_, raw(ns), 1)};
}

std::string_view namespace_table::name(ns_id ns) const {
    const ns_record& r = records_[raw(ns)];
    return {names_.data() + r.name_begin, r.name_bytes};
}

}  // namespace kvo

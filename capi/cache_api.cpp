// kvo_base.h and kvo_cache.h: flat wrappers, no logic.
#include "guard.hpp"
#include "kvoffload/kvoffload.h"

using namespace kvo::capi;
using kvo::fail;

const char* kvo_last_error(void) noexcept { return kvo::error_text(); }
const char* kvo_status_name(kvo_status_t status) noexcept { return kvo::status_name(status); }
uint32_t kvo_version(void) noexcept {
    return KVO_VERSION_MAJOR * 10000 + KVO_VERSION_MINOR * 100 + KVO_VERSION_PATCH;
}

void kvo_config_init(kvo_config_t* config) noexcept {
    if (config == nullptr) return;
    const kvo_config_t init = KVO_CONFIG_INIT;
    *config = init;
}

void kvo_group_config_init(kvo_group_config_t* config) noexcept {
    if (config == nullptr) return;
    const kvo_group_config_t init = KVO_GROUP_CONFIG_INIT;
    *config = init;
}

kvo_status_t kvo_cache_create(const kvo_config_t* config, kvo_cache_t** out) noexcept {
    return guarded([&]() -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = nullptr;
        const kvo_config_t defaults = KVO_CONFIG_INIT;
        kvo_config_t full;
        KVO_TRY(read_struct("kvo_config_t", config, defaults, false, &full));
        return create_cache(full, nullptr, {}, out);
    });
}

kvo_status_t kvo_register_group(kvo_cache_t* cache, const kvo_group_config_t* config,
                                uint32_t* group) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("group", group));
        *group = 0;
        const kvo_group_config_t defaults = KVO_GROUP_CONFIG_INIT;
        kvo_group_config_t full;
        KVO_TRY(read_struct("kvo_group_config_t", config, defaults, false, &full));
        std::span<const kvo_part_t> parts;
        KVO_TRY(read_list("parts", full.parts, full.n_parts, &parts));
        return c.blocks->register_group(full, group);
    });
}

kvo_status_t kvo_cache_start(kvo_cache_t* cache) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        const kvo_config_t& config = c.blocks->config();
        KVO_TRY(c.blocks->start(kvo::sequences::bytes_per_block(config),
                                kvo::sequences::bytes_fixed(config)));
        KVO_TRY(c.sequences->start());
        c.started = true;
        return KVO_OK;
    });
}

kvo_status_t kvo_cache_shutdown(kvo_cache_t* cache, uint64_t timeout_ns) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->shutdown(timeout_ns); });
}

kvo_status_t kvo_cache_destroy(kvo_cache_t* cache, uint32_t flags) noexcept {
    if (cache == nullptr) return KVO_OK;
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_no_bits("flags", flags, KVO_DESTROY_DISCARD));
        const uint32_t n_open = c.started ? c.sequences->n_open() : 0;
        if (n_open > 0 && (flags & KVO_DESTROY_DISCARD) == 0) {
            return fail(KVO_E_BUSY, "{} sequences are open: end them, or give KVO_DESTROY_DISCARD", n_open);
        }
        KVO_TRY(c.blocks->may_destroy(flags));
        auto gone = remove_cache(cache);
        if (gone) gone->blocks.reset();
        return KVO_OK;
    });
}

kvo_status_t kvo_cache_resize(kvo_cache_t* cache, uint64_t budget_bytes) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->resize(budget_bytes); });
}

kvo_status_t kvo_capacity(kvo_cache_t* cache, kvo_capacity_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) {
        return write_struct("kvo_capacity_t", out,
                            [&](kvo_capacity_t* full) { return c.blocks->capacity(full); });
    });
}

kvo_status_t kvo_group_detach(kvo_cache_t* cache, uint32_t group) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->group_detach(group); });
}

kvo_status_t kvo_group_attach(kvo_cache_t* cache, uint32_t group, const kvo_part_t* parts,
                              uint32_t n_parts) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        std::span<const kvo_part_t> list;
        KVO_TRY(read_list("parts", parts, n_parts, &list));
        return c.blocks->group_attach(group, parts, n_parts);
    });
}

kvo_status_t kvo_quiesce(kvo_cache_t* cache, uint64_t timeout_ns) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->quiesce(timeout_ns); });
}

kvo_status_t kvo_reset(kvo_cache_t* cache) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->reset(); });
}

kvo_status_t kvo_setup_pause(kvo_cache_t* cache) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->setup_pause(); });
}

kvo_status_t kvo_setup_resume(kvo_cache_t* cache) noexcept {
    return with_cache(cache, [&](open_cache& c) { return c.blocks->setup_resume(); });
}

kvo_status_t kvo_ns_open(kvo_cache_t* cache, const char* name, const kvo_ns_options_t* options,
                         kvo_ns_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("out", out));
        *out = {0};
        KVO_TRY(check_not_null("name", name));
        constexpr size_t kMostNameBytes = 255;
        const size_t bytes = strnlen(name, kMostNameBytes + 1);
        if (bytes > kMostNameBytes) {
            return fail(KVO_E_RANGE, "namespace name longer than {} bytes", kMostNameBytes);
        }
        const kvo_ns_options_t defaults = KVO_NS_OPTIONS_INIT;
        kvo_ns_options_t full;
        KVO_TRY(read_struct("kvo_ns_options_t", options, defaults, true, &full));
        KVO_TRY(check_no_bits("kvo_ns_options_t.scrub", full.scrub, 1));
        KVO_TRY(check_no_bits("kvo_ns_options_t.reserved", full.reserved, 0));
        return c.blocks->ns_open({name, bytes}, full, out);
    });
}

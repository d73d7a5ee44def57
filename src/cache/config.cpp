#include "cache/config.hpp"

#include <unistd.h>

#include <algorithm>

#include "cache/handles.hpp"

namespace kvo {

namespace {

constexpr uint32_t kMaxOps = 1u << 20;
constexpr uint32_t kMaxInflightBlocks = 1u << 26;
constexpr uint64_t kMaxEvents = uint64_t{1} << 32;

status in_range(const char* field, uint64_t value, uint64_t low, uint64_t high) {
    if (value >= low && value <= high) return KVO_OK;
    return fail(KVO_E_ARGUMENT, "{} is {}; it must be {}..{}", field, value, low, high);
}

status check_enums(const kvo_config_t& c) {
    if (c.device > KVO_DEVICE_NONE) {
        return fail(KVO_E_ARGUMENT, "device is {}; known are 0 (host) and 1 (none)", c.device);
    }
    if (c.policy > KVO_POLICY_ARC) {
        return fail(KVO_E_ARGUMENT, "policy is {}; known are 0 (lru) and 1 (arc)", c.policy);
    }
    if (c.progress > KVO_PROGRESS_MANUAL) {
        return fail(KVO_E_ARGUMENT, "progress is {}; known are 0 (thread) and 1 (manual)",
                    c.progress);
    }
    if (c.setup > KVO_SETUP_EAGER) {
        return fail(KVO_E_ARGUMENT, "setup is {}; known are 0 (background) and 1 (eager)", c.setup);
    }
    if (c.reserved != 0) return fail(KVO_E_ARGUMENT, "reserved is {}; it must be 0", c.reserved);
    return KVO_OK;
}

void fill_defaults(kvo_config_t* c) {
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    c->max_bytes = or_default(c->max_bytes, c->budget_bytes);
    c->max_ops = or_default(c->max_ops, 1024);
    c->max_inflight_blocks = or_default(c->max_inflight_blocks, 65536);
    c->max_tickets = or_default(c->max_tickets, 1024);
    c->max_seqs = or_default(c->max_seqs, 1024);
    c->host_share = or_default(c->host_share, 1);
    c->max_seq_tokens = or_default(c->max_seq_tokens, uint64_t{1} << 20);
    c->max_extra_bytes = or_default(c->max_extra_bytes, uint64_t{1} << 20);
    c->window_bytes = or_default(c->window_bytes, 0);
    c->store_bytes_per_s = or_default(c->store_bytes_per_s, 0);
    c->huge_pages = or_default(c->huge_pages, 1);
    c->prefault_threads =
        or_default(c->prefault_threads, static_cast<uint32_t>(std::clamp<long>(cpus, 1, 4)));
}

}  // namespace

status check_struct(const char* what, uint32_t size, uint32_t version, uint64_t expected_size) {
    if (size == expected_size && version == KVO_API_VERSION) return KVO_OK;
    return fail(
        KVO_E_STRUCT,
        "{}: struct_size {} api_version {}, this library knows {} and {}; fill the struct with its "
        "INIT macro",
        what, size, version, expected_size, KVO_API_VERSION);
}

status check_config(const kvo_config_t& config, kvo_config_t* out) {
    status s = check_struct("kvo_config_t", config.struct_size, config.api_version, sizeof(config));
    if (s != KVO_OK) return s;
    if ((s = check_enums(config)) != KVO_OK) return s;
    kvo_config_t c = config;
    fill_defaults(&c);
    if (c.budget_bytes == 0 || c.budget_bytes == KVO_DEFAULT_U64) {
        return fail(KVO_E_ARGUMENT,
                    "budget_bytes is required: how much host memory the cache may hold");
    }
    if (c.max_bytes < c.budget_bytes) {
        return fail(KVO_E_ARGUMENT,
                    "max_bytes {} is below budget_bytes {}; leave it at its default", c.max_bytes,
                    c.budget_bytes);
    }
    struct {
        const char* field;
        uint64_t value, low, high;
    } const ranges[] = {
        {"block_tokens", c.block_tokens, 1, 65536},
        {"max_ops", c.max_ops, 1, kMaxOps},
        {"max_inflight_blocks", c.max_inflight_blocks, 1, kMaxInflightBlocks},
        {"max_tickets", c.max_tickets, 1, kMaxHandles},
        {"max_seqs", c.max_seqs, 1, kMaxHandles},
        {"max_seq_tokens", c.max_seq_tokens, 0, uint64_t{1} << 36},
        {"max_extra_bytes", c.max_extra_bytes, 0, uint64_t{1} << 36},
        {"host_share", c.host_share, 1, 65536},
        {"fingerprint_bytes", c.fingerprint_bytes, 0, 4096},
        {"event_ring", c.event_ring, 0, kMaxEvents},
        {"huge_pages", c.huge_pages, 0, 1},
        {"prefault_threads", c.prefault_threads, 1, 256},
    };
    for (const auto& r : ranges) {
        if ((s = in_range(r.field, r.value, r.low, r.high)) != KVO_OK) return s;
    }
    if (c.fingerprint == nullptr && c.fingerprint_bytes > 0) {
        return fail(KVO_E_ARGUMENT, "fingerprint is NULL but fingerprint_bytes is {}",
                    c.fingerprint_bytes);
    }
    if (c.numa_node < -1) {
        return fail(KVO_E_ARGUMENT, "numa_node is {}; it must be a node or -1", c.numa_node);
    }
    *out = c;
    return KVO_OK;
}

}  // namespace kvo

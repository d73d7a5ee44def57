// The cache as an object: life, groups, namespaces and the block level. Move-only; the destructor shuts
// down, drops what is left and never fails. Every member is the C function of the same name, which says
// what it does; any thread, as there. Streams are always named: nothing defaults to a stream.
#pragma once

#include <chrono>
#include <string>

#include "kvoffload/kvo_block.h"
#include "kvoffload/kvo_cache.h"
#include "kvoffload/kvo_stats.h"
#include "kvoffload/status.hpp"
#include "kvoffload/view.hpp"

namespace kvoffload {
inline namespace v0_1 {

using nanoseconds = std::chrono::nanoseconds;
constexpr nanoseconds forever = nanoseconds::max();

inline uint64_t to_ns(nanoseconds t) noexcept {
    if (t == forever) return KVO_FOREVER;
    return t.count() < 0 ? 0 : static_cast<uint64_t>(t.count());
}

inline kvo_config_t default_config() noexcept { return KVO_CONFIG_INIT; }
inline kvo_group_config_t default_group() noexcept { return KVO_GROUP_CONFIG_INIT; }

// A pinned match. Unpins when it goes. Must not outlive its cache.
class ticket {
public:
    ticket() noexcept = default;
    ticket(kvo_cache_t* cache, kvo_ticket_t value, kvo_match_t found) noexcept
        : cache_(cache), value_(value), found_(found) {}
    ticket(ticket&& other) noexcept { swap(other); }
    ticket& operator=(ticket&& other) noexcept {
        ticket(std::move(other)).swap(*this);
        return *this;
    }
    ~ticket() { (void)release(); }

    explicit operator bool() const noexcept { return value_.value != 0; }
    kvo_ticket_t get() const noexcept { return value_; }
    uint32_t n_ready() const noexcept { return found_.n_ready; }
    uint32_t n_pending() const noexcept { return found_.n_pending; }

    status poll() noexcept { return kvo_ticket_poll(cache_, value_, &found_); }
    status trim(uint32_t n_keep) noexcept {
        const status ok = kvo_ticket_trim(cache_, value_, n_keep);
        if (!ok) return ok;
        if (n_keep < found_.n_ready + found_.n_pending) {
            found_.n_ready = n_keep < found_.n_ready ? n_keep : found_.n_ready;
            found_.n_pending = n_keep - found_.n_ready;
        }
        return ok;
    }
    status release() noexcept {
        if (value_.value == 0) return {};
        const kvo_ticket_t mine = value_;
        value_ = {0};
        found_ = {0, 0};
        return kvo_ticket_release(cache_, mine);
    }
    // Bytes of block i of the ready run.
    result<view<const uint8_t>> bytes(uint32_t i, uint32_t group) const noexcept {
        const void* data = nullptr;
        uint64_t n = 0;
        const status ok = kvo_view(cache_, value_, i, group, &data, &n);
        if (!ok) return ok;
        return view<const uint8_t>(static_cast<const uint8_t*>(data), static_cast<size_t>(n));
    }

private:
    void swap(ticket& other) noexcept {
        std::swap(cache_, other.cache_);
        std::swap(value_, other.value_);
        std::swap(found_, other.found_);
    }
    kvo_cache_t* cache_ = nullptr;
    kvo_ticket_t value_{0};
    kvo_match_t found_{0, 0};
};

struct stored {
    kvo_store_result_t result{};
    kvo_op_t op{0};
};

class cache {
public:
    cache() noexcept = default;
    explicit cache(kvo_cache_t* owned) noexcept : c_(owned) {}
    cache(cache&& other) noexcept : c_(std::exchange(other.c_, nullptr)) {}
    cache& operator=(cache&& other) noexcept {
        cache moved(std::move(other));
        std::swap(c_, moved.c_);
        return *this;
    }
    ~cache() {
        if (c_ == nullptr) return;
        (void)kvo_cache_shutdown(c_, KVO_FOREVER);
        (void)kvo_cache_destroy(c_, KVO_DESTROY_DISCARD);
    }
    static result<cache> create(const kvo_config_t& config) noexcept {
        kvo_cache_t* c = nullptr;
        const status ok = kvo_cache_create(&config, &c);
        if (!ok) return ok;
        return cache(c);
    }
    explicit operator bool() const noexcept { return c_ != nullptr; }
    kvo_cache_t* get() const noexcept { return c_; }

    // ---- life ----
    result<uint32_t> register_group(const kvo_group_config_t& group) noexcept {
        uint32_t number = 0;
        const status ok = kvo_register_group(c_, &group, &number);
        if (!ok) return ok;
        return number;
    }
    status start() noexcept { return kvo_cache_start(c_); }
    status shutdown(nanoseconds timeout) noexcept { return kvo_cache_shutdown(c_, to_ns(timeout)); }
    // Unlike the destructor: KVO_E_BUSY while something is held, and the object stays usable then.
    status destroy() noexcept {
        const status ok = kvo_cache_destroy(c_, 0);
        if (ok) c_ = nullptr;
        return ok;
    }
    status resize(uint64_t budget_bytes) noexcept { return kvo_cache_resize(c_, budget_bytes); }
    result<kvo_capacity_t> capacity() const noexcept {
        kvo_capacity_t out = KVO_CAPACITY_INIT;
        const status ok = kvo_capacity(c_, &out);
        if (!ok) return ok;
        return out;
    }
    status detach(uint32_t group) noexcept { return kvo_group_detach(c_, group); }
    status attach(uint32_t group, view<const kvo_part_t> parts) noexcept {
        return kvo_group_attach(c_, group, parts.data(), parts.count());
    }
    status quiesce(nanoseconds timeout) noexcept { return kvo_quiesce(c_, to_ns(timeout)); }
    status reset() noexcept { return kvo_reset(c_); }
    status setup_pause() noexcept { return kvo_setup_pause(c_); }
    status setup_resume() noexcept { return kvo_setup_resume(c_); }
    // A name with a NUL inside is refused: C would see another, shorter name.
    result<kvo_ns_t> open_namespace(const std::string& name) noexcept {
        return open_namespace_with(name, nullptr);
    }
    result<kvo_ns_t> open_namespace(const std::string& name, const kvo_ns_options_t& options) noexcept {
        return open_namespace_with(name, &options);
    }

    // ---- match ----
    result<kvo_match_t> probe(kvo_ns_t ns, view<const kvo_key_t> keys, uint32_t n_local) const noexcept {
        kvo_match_t out{0, 0};
        const status ok = kvo_probe(c_, ns, keys.data(), keys.count(), n_local, &out);
        if (!ok) return ok;
        return out;
    }
    // The ticket converts to false when nothing matched.
    result<ticket> match(kvo_ns_t ns, view<const kvo_key_t> keys, uint32_t n_local,
                         const kvo_match_options_t* options = nullptr) noexcept {
        kvo_ticket_t value{0};
        kvo_match_t found{0, 0};
        const status ok = kvo_match(c_, ns, keys.data(), keys.count(), n_local, options, &value, &found);
        if (!ok) return ok;
        return ticket(c_, value, found);
    }

    // ---- copies ----
    result<kvo_op_t> load(const ticket& t, uint32_t first, uint32_t n, view<const kvo_blocks_t> dst,
                          void* stream, const kvo_load_options_t* options = nullptr) noexcept {
        kvo_op_t op{0};
        const status ok = kvo_load(c_, t.get(), first, n, dst.data(), dst.count(), stream, options, &op);
        if (!ok) return ok;
        return op;
    }
    // parent NULL: keys[0] is a root.
    result<stored> store(kvo_ns_t ns, view<const kvo_key_t> keys, const kvo_key_t* parent,
                         view<const kvo_blocks_t> src, void* stream,
                         const kvo_store_options_t* options = nullptr) noexcept {
        stored out;
        const status ok = kvo_store(c_, ns, keys.data(), keys.count(), parent, src.data(), src.count(),
                                    stream, options, &out.result, &out.op);
        if (!ok) return ok;
        return out;
    }
    status fence(view<const kvo_blocks_t> blocks, void* stream, kvo_fence_mode_t mode) noexcept {
        return kvo_fence(c_, blocks.data(), blocks.count(), stream, mode);
    }
    status wait_stream(kvo_op_t op, void* stream, uint32_t flags = 0) noexcept {
        return kvo_op_wait_stream(c_, op, stream, flags);
    }
    // How many completions were written to out.
    result<uint32_t> poll(view<kvo_completion_t> out, nanoseconds budget) noexcept {
        uint32_t n = 0;
        const status ok = kvo_poll(c_, out.data(), out.count(), to_ns(budget), &n);
        if (!ok) return ok;
        return n;
    }
    result<kvo_completion_t> test(kvo_op_t op) noexcept {
        kvo_completion_t out{};
        const status ok = kvo_op_test(c_, op, &out);
        if (!ok) return ok;
        return out;
    }
    result<kvo_completion_t> wait(kvo_op_t op, nanoseconds timeout) noexcept {
        kvo_completion_t out{};
        const status ok = kvo_op_wait(c_, op, to_ns(timeout), &out);
        if (!ok) return ok;
        return out;
    }
    status cancel(kvo_op_t op) noexcept { return kvo_op_cancel(c_, op); }
    result<uint32_t> pending() const noexcept {
        uint32_t n = 0;
        const status ok = kvo_pending(c_, &n);
        if (!ok) return ok;
        return n;
    }
    result<int> event_fd() noexcept {
        int fd = -1;
        const status ok = kvo_event_fd(c_, &fd);
        if (!ok) return ok;
        return fd;
    }
    // chain NULL: the whole namespace.
    result<kvo_op_t> purge(kvo_ns_t ns, const kvo_key_t* chain) noexcept {
        kvo_op_t op{0};
        const status ok = kvo_purge(c_, ns, chain, &op);
        if (!ok) return ok;
        return op;
    }

    // ---- statistics ----
    result<kvo_stats_t> stats() const noexcept {
        kvo_stats_t out;
        kvo_stats_init(&out);
        const status ok = kvo_stats(c_, &out);
        if (!ok) return ok;
        return out;
    }
    result<std::string> metrics_text() const { return text(kvo_metrics_text); }
    result<std::string> stats_json() const { return text(kvo_stats_json); }

private:
    using text_fn = kvo_status_t (*)(kvo_cache_t*, char*, size_t, size_t*);
    result<std::string> text(text_fn write) const {
        size_t needed = 0;
        status ok = write(c_, nullptr, 0, &needed);
        std::string out(needed, '\0');
        // Numbers may have grown by a digit in between.
        while (ok == status(KVO_E_RANGE)) {
            out.assign(needed + 64, '\0');
            ok = write(c_, &out[0], out.size(), &needed);
        }
        if (!ok) return ok;
        out.resize(needed - 1);
        return out;
    }
    result<kvo_ns_t> open_namespace_with(const std::string& name, const kvo_ns_options_t* options) noexcept {
        if (name.find('\0') != std::string::npos) return status(KVO_E_ARGUMENT);
        kvo_ns_t ns{0};
        const status ok = kvo_ns_open(c_, name.c_str(), options, &ns);
        if (!ok) return ok;
        return ns;
    }
    kvo_cache_t* c_ = nullptr;
};

}  // namespace v0_1
}  // namespace kvoffload

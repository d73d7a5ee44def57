// kvo_stats.h: the counters as struct, Prometheus text and JSON, and the events.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "guard.hpp"
#include "kvoffload/kvo_stats.h"
#include "stats_fields.hpp"

using namespace kvo::capi;
using kvo::fail;

namespace {

#define KVO_COUNT(name, kind, help) +1
constexpr size_t kFields = 0 KVO_STATS_FIELDS(KVO_COUNT);
#undef KVO_COUNT
static_assert(sizeof(kvo_stats_t) == 2 * sizeof(uint32_t) + kFields * sizeof(uint64_t),
              "stats_fields.hpp lists every field of kvo_stats_t");

kvo_status_t read_all(open_cache& c, kvo_stats_t* out) {
    kvo_stats_init(out);
    KVO_TRY(c.blocks->stats(out));
    if (c.started) out->seqs = c.sequences->n_open();
    return KVO_OK;
}

std::string prometheus_text(const kvo_stats_t& s) {
    std::string text;
    const auto add = [&](const char* name, const char* kind, const char* help, uint64_t value) {
        fmt::format_to(std::back_inserter(text), "# HELP kvoffload_{} {}.\n# TYPE kvoffload_{} {}\nkvoffload_{} {}\n",
                       name, help, name, kind, name, value);
    };
#define KVO_ADD(name, kind, help) add(#name, #kind, help, s.name);
    KVO_STATS_FIELDS(KVO_ADD)
#undef KVO_ADD
    return text;
}

// Field names are identifiers and values are numbers, so nothing needs escaping.
std::string json_text(const kvo_stats_t& s) {
    std::string text = "{";
#define KVO_ADD(name, kind, help) \
    fmt::format_to(std::back_inserter(text), "{}\"{}\": {}", text.size() > 1 ? ", " : "", #name, s.name);
    KVO_STATS_FIELDS(KVO_ADD)
#undef KVO_ADD
    return text + "}";
}

kvo_status_t copy_text(const std::string& text, char* buffer, size_t size, size_t* needed) {
    *needed = text.size() + 1;
    if (buffer == nullptr || size < *needed) {
        return fail(KVO_E_RANGE, "the text needs {} bytes, the buffer has {}", *needed, buffer == nullptr ? 0 : size);
    }
    std::memcpy(buffer, text.c_str(), *needed);
    return KVO_OK;
}

kvo_status_t give_text(kvo_cache_t* cache, char* buffer, size_t size, size_t* needed,
                       std::string (*format)(const kvo_stats_t&)) {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("needed", needed));
        *needed = 0;
        kvo_stats_t all;
        KVO_TRY(read_all(c, &all));
        return copy_text(format(all), buffer, size, needed);
    });
}

}  // namespace

void kvo_stats_init(kvo_stats_t* stats) noexcept {
    if (stats == nullptr) return;
    *stats = {};
    stats->struct_size = sizeof(kvo_stats_t);
    stats->api_version = KVO_API_VERSION;
}

kvo_status_t kvo_stats(kvo_cache_t* cache, kvo_stats_t* out) noexcept {
    return with_cache(cache, [&](open_cache& c) {
        return write_struct("kvo_stats_t", out, [&](kvo_stats_t* full) { return read_all(c, full); });
    });
}

kvo_status_t kvo_metrics_text(kvo_cache_t* cache, char* buffer, size_t size, size_t* needed) noexcept {
    return give_text(cache, buffer, size, needed, prometheus_text);
}

kvo_status_t kvo_stats_json(kvo_cache_t* cache, char* buffer, size_t size, size_t* needed) noexcept {
    return give_text(cache, buffer, size, needed, json_text);
}

kvo_status_t kvo_events_poll(kvo_cache_t* cache, kvo_event_t* out, uint32_t max, uint32_t* n,
                             uint64_t* lost) noexcept {
    return with_cache(cache, [&](open_cache& c) -> kvo_status_t {
        KVO_TRY(check_not_null("n", n));
        KVO_TRY(check_not_null("lost", lost));
        *n = 0;
        *lost = 0;
        if (max > 0) KVO_TRY(check_not_null("out", out));
        return c.blocks->events_poll(out, max, n, lost);
    });
}

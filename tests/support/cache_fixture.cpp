#include "support/cache_fixture.hpp"

#include <cstdlib>
#include <cstring>

#include "cache/groups.hpp"

namespace kvo::test {

namespace {

void must(status s, const char* call) {
    if (s == KVO_OK) return;
    std::fprintf(stderr, "%s: %s: %s\n", call, status_name(s), error_text());
    std::abort();
}

uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
}

uint64_t word_of(uint64_t key, uint32_t version, uint32_t place) {
    return mix(key * 1000003 + version) ^ mix(place + 1);
}

}  // namespace

kvo_key_t cache_fixture::key(uint64_t number) {
    kvo_key_t k{};
    std::memcpy(k.bytes, &number, sizeof number);
    return k;
}

uint64_t cache_fixture::number(const kvo_key_t& key) {
    uint64_t n = 0;
    std::memcpy(&n, key.bytes, sizeof n);
    return n;
}

std::vector<kvo_key_t> cache_fixture::keys(const std::vector<uint64_t>& numbers) {
    std::vector<kvo_key_t> out;
    for (const uint64_t n : numbers) out.push_back(key(n));
    return out;
}

cache_fixture::cache_fixture(const cache_setup& s) : setup(s), table(device.table()) {
    config.block_tokens = 16;
    config.progress = KVO_PROGRESS_MANUAL;
    config.setup = KVO_SETUP_EAGER;
    config.max_ops = 64;
    config.max_inflight_blocks = 4096;
    config.max_tickets = 64;
    config.max_pinned_bytes = uint64_t{1} << 40;
    config.event_ring = 256;
    config.budget_bytes = 1;
    if (setup.host_device) table = host_device();
    if (setup.custom != nullptr) table = *setup.custom;
    if (setup.adjust) setup.adjust(&config);
    for (uint32_t g = 0; g < n_device_groups(); ++g) {
        uint64_t bytes = 0;
        if (g == 0) {
            for (const uint32_t b : setup.part_bytes) bytes += b;
        } else {
            bytes = setup.more_groups[g - 1];
        }
        memory_.emplace_back(bytes * setup.n_device_blocks);
    }
    choose_budget();
    must(cache::create(config, &table, setup.host_device ? time_source{} : device.clock(), &c),
         "create");
    register_groups();
    must(c->start(0, 0), "start");
    stream = setup.host_device ? KVO_STREAM_IDLE : device.make_stream();
}

cache_fixture::~cache_fixture() {
    if (c == nullptr) return;
    // A fixture goes away with things in flight; only the device can end them.
    (void)c->shutdown(0);
    for (int i = 0; i < 1000 && !setup.host_device; ++i) {
        uint32_t n = 0;
        (void)c->poll(nullptr, 0, 0, &n);
        device.run();
    }
    (void)c->may_destroy(KVO_DESTROY_DISCARD);
}

namespace {

std::vector<kvo_group_config_t> group_configs(const cache_setup& s,
                                              std::vector<std::vector<uint8_t>>& memory,
                                              std::vector<std::vector<kvo_part_t>>* parts) {
    std::vector<kvo_group_config_t> out;
    const auto n_groups = static_cast<uint32_t>(1 + s.more_groups.size());
    for (uint32_t g = 0; g < n_groups; ++g) {
        const std::vector<uint32_t> bytes =
            g == 0 ? s.part_bytes : std::vector<uint32_t>{s.more_groups[g - 1]};
        uint8_t* at = memory[g].data();
        std::vector<kvo_part_t> list;
        for (const uint32_t b : bytes) {
            list.push_back({at, b, b, 0, 1, 0});
            at += uint64_t{b} * s.n_device_blocks;
        }
        parts->push_back(std::move(list));
    }
    for (uint32_t g = 0; g < n_groups; ++g) {
        kvo_group_config_t config = KVO_GROUP_CONFIG_INIT;
        config.device_block_tokens = 16 / s.ratio;
        config.n_device_blocks = s.n_device_blocks;
        config.n_parts = static_cast<uint32_t>((*parts)[g].size());
        config.parts = (*parts)[g].data();
        out.push_back(config);
    }
    if (s.opaque_bytes > 0) {
        kvo_group_config_t config = KVO_GROUP_CONFIG_INIT;
        config.kind = KVO_GROUP_OPAQUE;
        config.opaque_bytes = s.opaque_bytes;
        out.push_back(config);
    }
    return out;
}

}  // namespace

void cache_fixture::register_groups() {
    std::vector<std::vector<kvo_part_t>> parts;
    for (const kvo_group_config_t& g : group_configs(setup, memory_, &parts)) {
        uint32_t index = 0;
        must(c->register_group(g, &index), "register_group");
    }
}

void cache_fixture::choose_budget() {
    group_table groups;
    std::vector<std::vector<kvo_part_t>> parts;
    for (const kvo_group_config_t& g : group_configs(setup, memory_, &parts)) {
        uint32_t index = 0;
        must(groups.add(g, config.block_tokens, KVO_DEVICE_HOST, &index), "add");
    }
    if (setup.max_blocks == 0) setup.max_blocks = setup.blocks;
    inputs_ = budget_inputs_for(config, groups, 0, 0);
    for (int i = 0; i < 6; ++i) {  // room for namespaces and chunks depend on the result
        inputs_.config.max_bytes = budget_for(setup.max_blocks);
        inputs_.config.budget_bytes = budget_for(setup.blocks);
    }
    config.max_bytes = inputs_.config.max_bytes;
    config.budget_bytes = inputs_.config.budget_bytes;
}

uint64_t cache_fixture::budget_for(uint32_t n) const {
    return metadata_bytes(inputs_, setup.max_blocks) + slots_bytes(layout_for(inputs_), n);
}

void cache_fixture::settle() {
    uint32_t pending = 1, n = 0;
    for (int idle = 0; idle < 20 && pending > 0;) {
        must(c->poll(nullptr, 0, 0, &n), "poll");
        const bool ran = !setup.host_device && device.run();
        idle = ran || setup.host_device ? 0 : idle + 1;
        must(c->pending(&pending), "pending");
    }
}

// ---- bytes ----

void cache_fixture::fill(uint32_t place, uint64_t key_number, uint32_t version) {
    for (uint32_t g = 0; g < n_device_groups(); ++g) {
        uint64_t at = 0;
        const std::vector<uint32_t> parts =
            g == 0 ? setup.part_bytes : std::vector<uint32_t>{setup.more_groups[g - 1]};
        uint32_t word = g << 24;
        for (const uint32_t bytes : parts) {
            uint8_t* p = memory_[g].data() + at + uint64_t{place} * setup.ratio * bytes;
            for (uint32_t b = 0; b + 8 <= bytes * setup.ratio; b += 8) {
                const uint64_t value = word_of(key_number, version, word++);
                std::memcpy(p + b, &value, 8);
            }
            at += uint64_t{bytes} * setup.n_device_blocks;
        }
    }
}

bool cache_fixture::holds(uint32_t place, uint64_t key_number, uint32_t version) const {
    for (uint32_t g = 0; g < n_device_groups(); ++g) {
        uint64_t at = 0;
        const std::vector<uint32_t> parts =
            g == 0 ? setup.part_bytes : std::vector<uint32_t>{setup.more_groups[g - 1]};
        uint32_t word = g << 24;
        for (const uint32_t bytes : parts) {
            const uint8_t* p = memory_[g].data() + at + uint64_t{place} * setup.ratio * bytes;
            for (uint32_t b = 0; b + 8 <= bytes * setup.ratio; b += 8) {
                uint64_t value = 0;
                std::memcpy(&value, p + b, 8);
                if (value != word_of(key_number, version, word++)) return false;
            }
            at += uint64_t{bytes} * setup.n_device_blocks;
        }
    }
    return true;
}

// ---- calls ----

std::vector<kvo_blocks_t> cache_fixture::lists(const std::vector<uint32_t>& ids) const {
    std::vector<kvo_blocks_t> out;
    for (uint32_t g = 0; g < n_device_groups(); ++g) {
        out.push_back({g, static_cast<uint32_t>(ids.size()), ids.data()});
    }
    return out;
}

std::string cache_fixture::stored::text() const {
    std::string out;
    for (const uint8_t v : verdicts) out += "TPWDHFORX"[v];
    return out;
}

cache_fixture::stored cache_fixture::submit(const std::vector<uint64_t>& numbers, uint32_t flags,
                                            uint32_t version) {
    stored out;
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < numbers.size(); ++i) {
        fill(i, numbers[i], version);
        for (uint32_t k = 0; k < setup.ratio; ++k) ids.push_back(i * setup.ratio + k);
    }
    out.verdicts.resize(numbers.size(), 99);
    kvo_store_options_t options = KVO_STORE_OPTIONS_INIT;
    options.flags = flags;
    options.verdicts = out.verdicts.data();
    const auto k = keys(numbers);
    out.result = c->store(ns, k, nullptr, lists(ids), stream, options, {}, &out.counts, &out.op);
    return out;
}

cache_fixture::stored cache_fixture::store(const std::vector<uint64_t>& numbers, uint32_t flags,
                                           uint32_t version) {
    const stored out = submit(numbers, flags, version);
    settle();
    if (out.result == KVO_OK && out.op.value != 0)
        must(take(out.op).status == KVO_OK ? KVO_OK : KVO_E_INTERNAL, "store");
    return out;
}

kvo_completion_t cache_fixture::take(kvo_op_t op) {
    kvo_completion_t out{};
    must(c->op_test(op, &out), "op_test");
    return out;
}

kvo_match_t cache_fixture::probe(const std::vector<uint64_t>& numbers, uint32_t n_local) {
    kvo_match_t out{};
    must(c->probe(ns, keys(numbers), n_local, &out), "probe");
    return out;
}

std::string cache_fixture::here(const std::vector<uint64_t>& numbers) {
    std::string out;
    for (const uint64_t n : numbers) {
        if (probe({n}).n_ready == 1) out += (out.empty() ? "" : " ") + std::to_string(n);
    }
    return out;
}

kvo_ticket_t cache_fixture::match(const std::vector<uint64_t>& numbers, uint32_t n_local,
                                  kvo_match_t* out) {
    kvo_ticket_t ticket{};
    kvo_match_t found{};
    must(c->match(ns, keys(numbers), n_local, KVO_MATCH_OPTIONS_INIT, {}, &ticket, &found),
         "match");
    if (out != nullptr) *out = found;
    return ticket;
}

void cache_fixture::touch(const std::vector<uint64_t>& numbers) {
    for (size_t i = numbers.size(); i-- > 0;) {
        const kvo_ticket_t t = match({numbers[i]});
        if (t.value != 0) must(c->ticket_release(t), "ticket_release");
    }
}

kvo_completion_t cache_fixture::load(kvo_ticket_t ticket, uint32_t n, uint32_t first_block) {
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < n * setup.ratio; ++i) ids.push_back(first_block * setup.ratio + i);
    kvo_op_t op{};
    must(c->load(ticket, 0, n, lists(ids), stream, KVO_LOAD_OPTIONS_INIT, {}, &op), "load");
    settle();
    return take(op);
}

kvo_stats_t cache_fixture::stats() {
    kvo_stats_t out{};
    out.struct_size = sizeof out;
    out.api_version = KVO_API_VERSION;
    must(c->stats(&out), "stats");
    return out;
}

kvo_capacity_t cache_fixture::capacity() {
    kvo_capacity_t out = KVO_CAPACITY_INIT;
    must(c->capacity(&out), "capacity");
    return out;
}

std::string cache_fixture::removed_and_stored() {
    std::string text;
    kvo_event_t e{};
    uint32_t n = 1;
    uint64_t lost = 0;
    while (c->events_poll(&e, 1, &n, &lost) == KVO_OK && n == 1) {
        text += (text.empty() ? "" : " ") + std::string(e.kind == KVO_EVENT_REMOVED ? "-" : "+") +
                std::to_string(number(e.key));
    }
    return text;
}

}  // namespace kvo::test

#include "support/seq_rig.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kvo::test {

namespace {

constexpr uint64_t kRoot = 0x5EED;

void must(status s, const char* call) {
    if (s == KVO_OK) return;
    std::fprintf(stderr, "%s: %s: %s\n", call, status_name(s), error_text());
    std::abort();
}

uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
}

uint64_t follow(uint64_t chain, uint64_t input) { return mix(chain * 31 + input + 1); }

void run_closure(void* arg) { (*static_cast<std::function<void()>*>(arg))(); }

}  // namespace

tokens_t make_tokens(uint32_t n, uint32_t seed) {
    tokens_t t(n);
    for (uint32_t i = 0; i < n; ++i) t[i] = static_cast<uint32_t>(mix(seed * 7919u + i) % 32000);
    return t;
}

tokens_t operator+(tokens_t a, const tokens_t& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

seq_rig::seq_rig(const rig_setup& rig) : setup(rig), device(rig.seed), calls(device.table()) {
    config.block_tokens = kBlock;
    config.progress = KVO_PROGRESS_MANUAL;
    config.setup = KVO_SETUP_EAGER;
    config.max_ops = 64;
    config.max_inflight_blocks = 4096;
    config.max_tickets = 64;
    config.max_seqs = 32;
    config.max_seq_tokens = 1 << 16;
    config.max_extra_bytes = 1 << 16;
    config.max_pinned_bytes = uint64_t{1} << 40;
    if (setup.adjust) setup.adjust(&config);
    memory_.resize(uint64_t{setup.n_device_blocks} * kPartBytes);
    if (setup.second_group_lag > 0)
        second_memory_.resize(uint64_t{setup.n_device_blocks} * kPartBytes);
    // The smallest budget that buys the blocks.
    uint64_t low = 0, high = uint64_t{1} << 34;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        kvo_capacity_t capacity = KVO_CAPACITY_INIT;
        const bool fits = middle < (uint64_t{1} << 28) ? try_start(middle) == KVO_OK : true;
        if (fits && c != nullptr) must(c->capacity(&capacity), "capacity");
        const bool enough = fits && (c == nullptr || capacity.blocks_target >= setup.blocks);
        (enough ? high : low) = middle;
        c.reset();
        s.reset();
    }
    must(try_start(high), "start");
    stream = device.make_stream();
}

status seq_rig::try_start(uint64_t budget) {
    config.budget_bytes = budget;
    if (status bad = cache::create(config, &calls, device.clock(), &c); bad != KVO_OK) return bad;
    must(sequences::create(*c, &s, setup.weaken), "sequences::create");
    for (uint32_t g = 0; g < (second_memory_.empty() ? 1u : 2u); ++g) {
        const kvo_part_t part{
            (g == 0 ? memory_ : second_memory_).data(), kPartBytes, kPartBytes, 0, 1, 0};
        kvo_group_config_t group = KVO_GROUP_CONFIG_INIT;
        group.device_block_tokens = device_block_tokens();
        group.n_device_blocks = setup.n_device_blocks;
        group.n_parts = 1;
        group.parts = &part;
        group.lag_tokens = g == 0 ? 0 : setup.second_group_lag;
        uint32_t index = 0;
        must(c->register_group(group, &index), "register_group");
    }
    const kvo_config_t& filled = c->config();
    const status bad = c->start(sequences::bytes_per_block(filled), sequences::bytes_fixed(filled));
    if (bad == KVO_OK) must(s->start(), "sequences::start");
    return bad;
}

seq_rig::~seq_rig() {
    if (c == nullptr) return;
    (void)c->shutdown(0);
    for (int i = 0; i < 1000; ++i) {
        uint32_t n = 0;
        (void)c->poll(nullptr, 0, 0, &n);
        device.run();
    }
    c.reset();
}

// ---- device memory ----

void seq_rig::store_words(uint32_t block, uint64_t chain) {
    for (auto* memory : {&memory_, &second_memory_}) {
        if (memory->empty()) continue;
        for (uint32_t i = 0; i < kPartBytes / 8; ++i) {
            const uint64_t word = i == 0 ? chain : mix(chain + i + (memory == &memory_ ? 0 : 99));
            std::memcpy(memory->data() + uint64_t{block} * kPartBytes + i * 8, &word, 8);
        }
    }
}

uint64_t seq_rig::chain_at(uint32_t block) const {
    uint64_t chain = 0;
    std::memcpy(&chain, memory_.data() + uint64_t{block} * kPartBytes, 8);
    return chain;
}

bool seq_rig::is_whole(uint32_t block) const {
    const uint64_t chain = chain_at(block);
    for (const auto* memory : {&memory_, &second_memory_}) {
        if (memory->empty()) continue;
        for (uint32_t i = 0; i < kPartBytes / 8; ++i) {
            const uint64_t word = i == 0 ? chain : mix(chain + i + (memory == &memory_ ? 0 : 99));
            if (std::memcmp(memory->data() + uint64_t{block} * kPartBytes + i * 8, &word, 8) != 0)
                return false;
        }
    }
    return true;
}

void seq_rig::compute(const std::vector<uint32_t>& blocks, const std::vector<uint64_t>& input,
                      uint32_t from, uint32_t to, void* on) {
    work_.emplace_back([this, blocks, input, from, to] {
        const uint32_t per = device_block_tokens();
        for (uint32_t b = from / per; b * per < to; ++b) {
            uint64_t chain = b == 0 ? kRoot : chain_at(blocks[b - 1]);
            for (uint32_t t = b * per; t < std::min(to, (b + 1) * per); ++t)
                chain = follow(chain, input[t]);
            store_words(blocks[b], chain);
        }
    });
    device.launch(on == nullptr ? stream : on, run_closure, &work_.back());
}

void seq_rig::copy_block(uint32_t from, uint32_t to) {
    work_.emplace_back([this, from, to] { store_words(to, chain_at(from)); });
    device.launch(stream, run_closure, &work_.back());
}

uint32_t seq_rig::n_right(const std::vector<uint32_t>& blocks, const std::vector<uint64_t>& input,
                          uint32_t n) const {
    const uint32_t per = device_block_tokens();
    uint64_t chain = kRoot;
    for (uint32_t b = 0; b * per < n; ++b) {
        for (uint32_t t = b * per; t < std::min(n, (b + 1) * per); ++t)
            chain = follow(chain, input[t]);
        if (chain_at(blocks[b]) != chain || !is_whole(blocks[b])) return b * per;
    }
    return n;
}

void seq_rig::scribble(const std::vector<uint32_t>& blocks) {
    for (const uint32_t b : blocks) store_words(b, 0xBADBADBAD);
}

void seq_rig::scribble_later(const std::vector<uint32_t>& blocks) {
    work_.emplace_back([this, blocks] { scribble(blocks); });
    device.launch(stream, run_closure, &work_.back());
}

std::vector<kvo_blocks_t> seq_rig::lists(const std::vector<uint32_t>& blocks) const {
    const auto n = static_cast<uint32_t>(blocks.size());
    std::vector<kvo_blocks_t> out{{0, n, blocks.data()}};
    if (setup.second_group_lag > 0) out.push_back({1, n, blocks.data()});
    return out;
}

std::vector<uint32_t> seq_rig::table_for(uint32_t first, uint32_t n_tokens) const {
    std::vector<uint32_t> out((n_tokens + kBlock - 1) / kBlock * setup.ratio);
    for (uint32_t& b : out) b = first++;
    return out;
}

// ---- the library ----

void seq_rig::settle() {
    uint32_t pending = 1, n = 0;
    for (int idle = 0; idle < 20;) {
        must(c->poll(nullptr, 0, 0, &n), "poll");
        idle = device.run() ? 0 : idle + 1;
        must(c->pending(&pending), "pending");
        if (pending == 0 && device.idle()) break;
    }
    if (device.idle()) work_.clear();
}

kvo_completion_t seq_rig::take(kvo_op_t op) {
    settle();
    kvo_completion_t done{};
    REQUIRE(c->op_test(op, &done) == KVO_OK);
    return done;
}

kvo_seq_t seq_rig::begin(const std::string& salt, uint32_t flags, kvo_ns_t ns) {
    kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
    options.salt = salt.data();
    options.salt_bytes = salt.size();
    options.flags = flags;
    kvo_seq_t seq{};
    REQUIRE(s->begin(ns, options, &seq) == KVO_OK);
    return seq;
}

seq_rig::found seq_rig::lookup(kvo_seq_t seq, const tokens_t& tokens, uint32_t n_local) {
    found f;
    f.result = s->lookup(seq, tokens, n_local, &f.n, &f.state);
    return f;
}

kvo_op_t seq_rig::prefill(kvo_seq_t seq, const std::vector<uint32_t>& blocks, uint32_t n,
                          status* result) {
    const kvo_load_options_t options = KVO_LOAD_OPTIONS_INIT;
    kvo_op_t op{};
    const status got = s->prefill(seq, lists(blocks), n, stream, options, &op);
    if (result != nullptr) {
        *result = got;
    } else {
        REQUIRE(got == KVO_OK);
    }
    return op;
}

status seq_rig::prefilled(kvo_seq_t seq, const std::vector<uint32_t>& blocks, uint32_t n_computed) {
    return s->prefilled(seq, n_computed, lists(blocks), stream);
}

uint32_t seq_rig::run_request(const tokens_t& tokens, uint32_t first_device_block,
                              const std::string& salt) {
    const auto n = static_cast<uint32_t>(tokens.size());
    const auto blocks = table_for(first_device_block, n);
    scribble(blocks);
    const kvo_seq_t seq = begin(salt);
    const found f = lookup(seq, tokens);
    REQUIRE(f.result == KVO_OK);
    if (f.n > 0) {
        const kvo_op_t op = prefill(seq, blocks, f.n);
        REQUIRE(take(op).status == KVO_OK);
    }
    std::vector<uint64_t> input(tokens.begin(), tokens.end());
    for (const char ch : salt) input[0] += static_cast<uint64_t>(ch) << 32;
    compute(blocks, input, f.n, n);
    REQUIRE(prefilled(seq, blocks, n) == KVO_OK);
    settle();
    CHECK(n_right(blocks, input, n) == n);
    REQUIRE(s->end(seq) == KVO_OK);
    return f.n;
}

uint32_t seq_rig::stored(const tokens_t& tokens, const std::string& salt) {
    const kvo_seq_t seq = begin(salt);
    const found f = lookup(seq, tokens + tokens_t{1});
    REQUIRE(f.result == KVO_OK);
    REQUIRE(s->end(seq) == KVO_OK);
    return f.n;
}

kvo_seq_info_t seq_rig::info(kvo_seq_t seq) {
    kvo_seq_info_t out = KVO_SEQ_INFO_INIT;
    REQUIRE(s->info(seq, &out) == KVO_OK);
    return out;
}

kvo_stats_t seq_rig::stats() {
    kvo_stats_t out{};
    out.struct_size = sizeof out;
    out.api_version = KVO_API_VERSION;
    REQUIRE(c->stats(&out) == KVO_OK);
    return out;
}

std::string seq_rig::left_over() {
    const kvo_stats_t now = stats();
    const sequences::room_t room = s->room();
    std::string out;
    const auto add = [&out](const char* what, uint64_t n) {
        if (n > 0) out += std::to_string(n) + " " + what + " ";
    };
    add("sequences", s->n_open());
    add("tickets", now.tickets);
    add("pinned", now.blocks_pinned);
    add("writing", now.blocks_writing);
    add("ops", now.ops_active);
    add("completions", now.completions_waiting);
    add("fence entries", now.fence_entries);
    add("reservations", now.reservations);
    add("token pages", room.token_pages_used);
    add("watches", room.watches_used);
    return out;
}

}  // namespace kvo::test

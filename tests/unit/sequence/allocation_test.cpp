// No hook allocates, from the first sequence on.
#include <memory>
#include <thread>
#include <vector>

#include "sequence/sequences.hpp"
#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#if KVO_COUNT_ALLOCATIONS

using namespace kvo;

namespace {

struct host_rig {
    host_rig() : memory(256 * 64) {
        config.budget_bytes = 64u << 20;
        config.block_tokens = 16;
        config.setup = KVO_SETUP_EAGER;
        config.max_seqs = 16;
        config.max_seq_tokens = 1 << 16;
        REQUIRE(cache::create(config, nullptr, {}, &c) == KVO_OK);
        REQUIRE(sequences::create(*c, &s) == KVO_OK);
        const kvo_part_t part{memory.data(), 64, 64, 0, 1, 0};
        kvo_group_config_t group = KVO_GROUP_CONFIG_INIT;
        group.n_device_blocks = 256;
        group.n_parts = 1;
        group.parts = &part;
        uint32_t index = 0;
        REQUIRE(c->register_group(group, &index) == KVO_OK);
        const kvo_config_t& filled = c->config();
        REQUIRE(c->start(sequences::bytes_per_block(filled), sequences::bytes_fixed(filled)) == KVO_OK);
        REQUIRE(s->start() == KVO_OK);
    }
    std::vector<uint8_t> memory;
    kvo_config_t config = KVO_CONFIG_INIT;
    std::unique_ptr<sequences> s;  // outlives the cache
    std::unique_ptr<cache> c;
};

// One request through all hooks; counts answers that are neither success nor a refusal for want of room.
void one_request(host_rig& rig, uint32_t r, std::span<uint32_t> tokens, std::span<const uint32_t> ids,
                 uint64_t* failures) {
    const auto ok = [failures](status s) { *failures += s == KVO_OK || (s <= -300 && s > -400) ? 0 : 1; };
    const auto n = static_cast<uint32_t>(tokens.size());
    for (uint32_t i = 0; i < n; ++i) tokens[i] = i * 7 + r % 4 * (i / 100);
    kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
    options.salt = "tenant";
    options.salt_bytes = r % 2 * 6;
    kvo_seq_t seq{}, fork{};
    ok(rig.s->begin({}, options, &seq));
    if (r % 3 == 0) ok(rig.s->extras(seq, 30, 40, &r, sizeof r));
    uint32_t found = 0;
    kvo_lookup_state_t answer{};
    ok(rig.s->lookup(seq, tokens, 0, &found, &answer));
    const kvo_blocks_t list{0, static_cast<uint32_t>(ids.size()), ids.data()};
    kvo_op_t op{};
    const kvo_load_options_t load = KVO_LOAD_OPTIONS_INIT;
    ok(rig.s->prefill(seq, {&list, 1}, found, KVO_STREAM_IDLE, load, &op));
    kvo_completion_t done{};
    if (op.value != 0) ok(rig.c->op_wait(op, KVO_FOREVER, &done));
    ok(rig.s->prefilled(seq, n, {&list, 1}, KVO_STREAM_IDLE));
    kvo_decode_item_t item{seq, tokens.data(), 3, n, &list, 1, 0};
    ok(rig.s->decode_batch({&item, 1}, KVO_STREAM_IDLE));
    ok(rig.s->fork(seq, n / 2, &fork));
    ok(rig.s->rewind(seq, n, nullptr));
    ok(rig.s->preempt(fork));
    ok(rig.s->end(fork));
    ok(rig.s->end(seq));
    // Nothing else orders our host writes behind its reads.
    while (rig.c->fence({&list, 1}, KVO_STREAM_IDLE, KVO_FENCE_FINISH) == KVO_E_NOT_READY) std::this_thread::yield();
}

}  // namespace

TEST_CASE("No hook allocates, short prompts or long") {
    host_rig rig;
    std::vector<uint32_t> tokens(16 * 250), ids(256);
    for (uint32_t i = 0; i < 256; ++i) ids[i] = i;
    uint64_t failures = 0, n = 0;
    {
        kvo::test::counted c;
        for (uint32_t r = 0; r < 60; ++r) {
            one_request(rig, r, std::span(tokens).first(r % 5 == 4 ? tokens.size() : 200), ids, &failures);
        }
        n = c.n();
    }
    CHECK(failures == 0);
    CHECK(n == 0);
    kvo_stats_t stats{};
    stats.struct_size = sizeof stats;
    stats.api_version = KVO_API_VERSION;
    REQUIRE(rig.c->stats(&stats) == KVO_OK);
    CHECK(stats.loaded_blocks > 100);
    CHECK(rig.s->n_open() == 0);
}

#endif

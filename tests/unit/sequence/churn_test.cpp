// Thousands of short lives: nothing may be left over, however a sequence ends.

#include "support/seq_rig.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

struct life {
    kvo_seq_t seq{};
    tokens_t tokens;
    std::vector<uint32_t> table;
    kvo_op_t load{};
    uint32_t stage = 0, number = 0;
};

void advance(seq_rig& rig, life& l) {
    const auto n = static_cast<uint32_t>(l.tokens.size());
    switch (l.stage++) {
        case 0: {
            const seq_rig::found f = rig.lookup(l.seq, l.tokens);
            REQUIRE(f.result == KVO_OK);
            REQUIRE(rig.c->fence(rig.lists(l.table), rig.stream, KVO_FENCE_DROP) == KVO_OK);
            if (f.n > 0) l.load = rig.prefill(l.seq, l.table, f.n);
            return;
        }
        case 1:
            if (l.load.value != 0) {
                REQUIRE(rig.take(l.load).status == KVO_OK);
                l.load = {};
            }
            rig.compute(l.table, l.tokens, 0, n);
            REQUIRE(rig.prefilled(l.seq, l.table, n) == KVO_OK);
            return;
        default:
            if (l.number % 3 > l.stage - 3) {
                const uint32_t token = l.number % 7;
                l.tokens.push_back(token);
                rig.compute(l.table, l.tokens, n, n + 1);
                REQUIRE(rig.s->decode(l.seq, {&token, 1}, n + 1, rig.lists(l.table), rig.stream) == KVO_OK);
                return;
            }
            REQUIRE(rig.s->end(l.seq) == KVO_OK);
            l.seq = {};
    }
}

void cancel_or_preempt(seq_rig& rig, life& l) {
    if (l.load.value != 0) REQUIRE(rig.c->op_cancel(l.load) == KVO_OK);
    if (l.number % 20 == 0) REQUIRE(rig.s->preempt(l.seq) == KVO_OK);
    REQUIRE(rig.s->end(l.seq) == KVO_OK);
    if (l.load.value != 0) rig.take(l.load);
    l.load = {};
    l.seq = {};
}

void run_lives(seq_rig& rig, uint32_t n_lives) {
    std::vector<life> open(8);
    uint32_t next = 0, ended = 0;
    while (ended < n_lives) {
        for (uint32_t slot = 0; slot < open.size(); ++slot) {
            life& l = open[slot];
            if (l.seq.value == 0) {
                if (next == n_lives) continue;
                l = life{};
                l.number = next++;
                l.seq = rig.begin();
                l.tokens = make_tokens(47 + l.number % 3, 1 + l.number % 40);
                l.table = rig.table_for(slot * 4, 64);
            }
            if (l.number % 10 == 0 && l.stage == 1 + l.number / 10 % 2) {
                cancel_or_preempt(rig, l);
            } else {
                advance(rig, l);
            }
            ended += l.seq.value == 0 ? 1 : 0;
        }
        uint32_t n = 0;
        REQUIRE(rig.c->poll(nullptr, 0, 0, &n) == KVO_OK);
        rig.device.run();
    }
    rig.settle();
}

}  // namespace

TEST_CASE("After 2000 sequences, and 2000 more, all is free or resident") {
    rig_setup setup;
    setup.blocks = 64;
    seq_rig rig(setup);
    for (int round = 0; round < 2; ++round) {
        run_lives(rig, 2000);
        CHECK(rig.left_over() == "");
        const kvo_stats_t now = rig.stats();
        CHECK(now.slots_free + now.blocks_resident == 64);
        CHECK(rig.s->room().extra_bytes_used == 0);
    }
}

TEST_CASE("Sequences, tokens and extras are inside what the level says it needs") {
    for (const uint32_t block_tokens : {1u, 16u, 300u}) {
        kvo_config_t config = KVO_CONFIG_INIT;
        config.block_tokens = block_tokens;
        config.max_ops = 10;
        config.max_seqs = 3;
        config.max_seq_tokens = 5000;
        config.max_extra_bytes = 1000;
        const uint64_t fixed = sequences::bytes_fixed(config);
        CHECK(sequences::bytes_per_block(config) == block_tokens * 4 + 16);
        config.max_seq_tokens = 10000;
        CHECK(sequences::bytes_fixed(config) >= fixed + 5000 * 4);
    }
    // What nothing could have room for is a large number, not a small one.
    kvo_config_t config = KVO_CONFIG_INIT;
    config.block_tokens = 16;
    config.max_ops = 10;
    config.max_seqs = 1;
    config.max_seq_tokens = UINT64_MAX - 1;
    config.max_extra_bytes = UINT64_MAX - 1;
    CHECK(sequences::bytes_fixed(config) > uint64_t{1} << 37);
}

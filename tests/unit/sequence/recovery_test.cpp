// What an engine may do after a refusal, a stale hit, a stalled store, a reset or a lost ancestor: go on, and
// find everything as if it had not happened.
#include "support/seq_rig.hpp"

using namespace kvo;
using namespace kvo::test;

TEST_CASE("A decode call that was refused can be made again") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(31), all = prompt + tokens_t{7};
    const auto table = rig.table_for(0, 48);
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, all, 0, 32);
    REQUIRE(rig.prefilled(seq, table, 31) == KVO_OK);
    const uint32_t token = 7;
    const std::vector<uint32_t> too_short{0};
    CHECK(rig.s->decode(seq, {&token, 1}, 32, rig.lists(too_short), rig.stream) == KVO_E_RANGE);
    CHECK(rig.info(seq).n_tokens == 31);
    CHECK(rig.s->decode(seq, {&token, 1}, 32, rig.lists(table), rig.device.capturing) == KVO_E_CAPTURING);
    CHECK(rig.info(seq).n_tokens == 31);
    CHECK(rig.s->decode(seq, {&token, 1}, 32, {}, rig.stream) == KVO_E_ARGUMENT);
    REQUIRE(rig.s->decode(seq, {&token, 1}, 32, rig.lists(table), rig.stream) == KVO_OK);
    CHECK(rig.info(seq).n_tokens == 32);
    rig.settle();
    CHECK(rig.stored(all) == 32);
    REQUIRE(rig.s->end(seq) == KVO_OK);
}

TEST_CASE("A block that became suspect after a lookup is looked up anew and not for ever") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(65);
    rig.run_request(prompt);
    const kvo_seq_t waits = rig.begin(), loads = rig.begin();
    REQUIRE(rig.lookup(waits, prompt).n == 64);
    REQUIRE(rig.lookup(loads, prompt).n == 64);
    rig.device.fail_batch = 0;
    rig.device.fail_batch_after = 2;
    const std::vector<uint32_t> apart{10, 12, 14, 16}, other{20, 22, 24, 26};
    CHECK(rig.take(rig.prefill(loads, apart, 64)).first_bad == 2);
    status result = KVO_OK;
    rig.prefill(waits, other, 64, &result);
    CHECK(result == KVO_E_DROPPED);
    CHECK(rig.lookup(waits, prompt).n == 32);
    CHECK(rig.take(rig.prefill(waits, other, 32)).n_done == 2);
    REQUIRE(rig.s->end(waits) == KVO_OK);
    REQUIRE(rig.s->end(loads) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("A stalled store is waited for once, not anew with each question") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(33);
    const auto table = rig.table_for(0, 33);
    const kvo_seq_t stores = rig.begin(), waits = rig.begin();
    REQUIRE(rig.lookup(stores, prompt).n == 0);
    rig.compute(table, prompt, 0, 33);  // its stream stands still
    REQUIRE(rig.prefilled(stores, table, 33) == KVO_OK);
    CHECK(rig.lookup(waits, prompt).state == KVO_LOOKUP_PENDING);
    CHECK(rig.lookup(waits, prompt).state == KVO_LOOKUP_PENDING);
    rig.device.now_ns += 2'000'000'000;
    CHECK(rig.lookup(waits, prompt).state == KVO_LOOKUP_MISS);
    CHECK(rig.lookup(waits, prompt).state == KVO_LOOKUP_MISS);
    rig.settle();
    CHECK(rig.lookup(waits, prompt).n == 32);
    REQUIRE(rig.s->end(stores) == KVO_OK);
    REQUIRE(rig.s->end(waits) == KVO_OK);
}

TEST_CASE("Blocks that were loaded before a reset do not enter the new generation") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(64), all = prompt + make_tokens(17, 5);
    rig.run_request(prompt);
    const kvo_seq_t old = rig.begin();
    const auto table = rig.table_for(10, 81);
    REQUIRE(rig.lookup(old, all).n == 64);
    REQUIRE(rig.take(rig.prefill(old, table, 64)).status == KVO_OK);
    REQUIRE(rig.c->reset() == KVO_OK);
    // It goes on with what it has; meanwhile the prefix is computed and stored with new weights.
    REQUIRE(rig.lookup(old, all, 64).result == KVO_OK);
    rig.run_request(prompt, 30);
    rig.compute(table, all, 64, 81);
    REQUIRE(rig.prefilled(old, table, 81) == KVO_OK);
    rig.settle();
    CHECK(rig.stored(all) == 64);
    REQUIRE(rig.s->end(old) == KVO_OK);
}

TEST_CASE("An ancestor that has left is stored again with what comes after it") {
    rig_setup setup;
    setup.blocks = 4;
    seq_rig rig(setup);
    const tokens_t mine = make_tokens(16, 1) + make_tokens(48, 2), others = make_tokens(64, 3);
    const auto table = rig.table_for(0, 64);
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.lookup(seq, mine).n == 0);
    rig.compute(table, mine, 0, 64);
    REQUIRE(rig.prefilled(seq, table, 32) == KVO_OK);
    rig.settle();
    rig.run_request(others, 20);  // takes all the room
    REQUIRE(rig.stored(mine) == 0);
    REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
    rig.settle();
    CHECK(rig.stored(mine) == 64);
    REQUIRE(rig.s->end(seq) == KVO_OK);
}

TEST_CASE("A block is loaded with all its groups or not at all") {
    rig_setup setup;
    setup.second_group_lag = 1;
    seq_rig rig(setup);
    const tokens_t prompt = make_tokens(65);
    rig.run_request(prompt);
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.lookup(seq, prompt).n >= 48);
    const auto table = rig.table_for(20, 48);
    const auto lists = rig.lists(table);
    kvo_op_t op{};
    CHECK(rig.s->prefill(seq, std::span(lists).first(1), 48, rig.stream, KVO_LOAD_OPTIONS_INIT, &op) ==
          KVO_E_ARGUMENT);
    CHECK(op.value == 0);
    CHECK(rig.take(rig.prefill(seq, table, 48)).n_done == 3);
    REQUIRE(rig.s->end(seq) == KVO_OK);
}

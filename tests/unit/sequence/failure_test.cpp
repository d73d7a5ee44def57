// When loads fail, sequences go back, fork, are taken away or end in the middle: nothing wrong is ever stored.
#include <memory>

#include "support/seq_rig.hpp"

using namespace kvo;
using namespace kvo::test;

TEST_CASE("A load that fails after the next step was queued leaves no wrong block in the cache") {
    for (uint32_t bad = 0; bad < 4; ++bad) {
        INFO("block " << bad);
        seq_rig rig;
        const tokens_t prompt = make_tokens(64), all = prompt + make_tokens(60, 3);
        rig.run_request(prompt);
        const kvo_seq_t seq = rig.begin();
        const std::vector<uint32_t> table{20, 22, 24, 26, 28, 30, 32, 34};  // a copy for each block
        rig.scribble(table);
        REQUIRE(rig.lookup(seq, all).n == 64);
        rig.device.fail_execution = bad;
        const kvo_op_t load = rig.prefill(seq, table, 64);
        REQUIRE(rig.c->op_wait_stream(load, rig.stream, 0) == KVO_OK);
        // The engine goes on without a host wait: computes, and gives the blocks to the store.
        rig.compute(table, all, 64, 124);
        REQUIRE(rig.prefilled(seq, table, 124) == KVO_OK);
        CHECK(rig.info(seq).n_stored_blocks == 7);  // four that were here and three new ones
        const kvo_completion_t done = rig.take(load);
        CHECK(done.status == KVO_E_TRANSFER);
        const uint32_t first_bad = done.first_bad * 16;
        CHECK(done.first_bad <= bad);
        CHECK(rig.info(seq).poisoned_from == first_bad);
        CHECK(rig.info(seq).n_loaded_tokens == first_bad);
        CHECK(rig.stats().store_blocks_dependency == 3);
        CHECK(rig.stored(all) <= 64);
        // Nothing more is stored until the engine goes back far enough.
        REQUIRE(rig.prefilled(seq, table, 124) == KVO_OK);
        const uint32_t token = 1;
        REQUIRE(rig.s->decode(seq, {&token, 1}, 124, rig.lists(table), rig.stream) == KVO_OK);
        REQUIRE(rig.s->rewind(seq, 64, rig.stream) == KVO_OK);
        CHECK(rig.info(seq).poisoned_from == first_bad);
        CHECK(rig.s->prefill(seq, rig.lists(table), 0, rig.stream, KVO_LOAD_OPTIONS_INIT,
                             std::make_unique<kvo_op_t>().get()) == KVO_E_STATE);
        REQUIRE(rig.s->rewind(seq, first_bad, rig.stream) == KVO_OK);
        CHECK(rig.info(seq).poisoned_from == UINT32_MAX);
        REQUIRE(rig.lookup(seq, all, first_bad).result == KVO_OK);
        rig.compute(table, all, first_bad, 124);
        REQUIRE(rig.prefilled(seq, table, 124) == KVO_OK);
        rig.settle();
        CHECK(rig.n_right(table, all, 124) == 124);
        REQUIRE(rig.s->end(seq) == KVO_OK);
        CHECK(rig.stored(all) == 112);
        CHECK(rig.run_request(all, 40) == 112);
        CHECK(rig.left_over() == "");
    }
}

TEST_CASE("A half-done load says what is good, and what is good can be had again") {
    rig_setup setup;
    seq_rig rig(setup);
    const tokens_t prompt = make_tokens(65);
    rig.run_request(prompt);
    const kvo_seq_t seq = rig.begin();
    const std::vector<uint32_t> table{10, 12, 14, 16};  // a copy for each block
    rig.scribble(table);
    REQUIRE(rig.lookup(seq, prompt).n == 64);
    rig.device.fail_batch = 0;
    rig.device.fail_batch_after = 2;
    const kvo_completion_t done = rig.take(rig.prefill(seq, table, 64));
    CHECK(done.status == KVO_E_TRANSFER);
    CHECK(done.first_bad == done.n_done);
    CHECK(rig.n_right(table, prompt, done.n_done * 16) == done.n_done * 16);
    CHECK(rig.info(seq).n_loaded_tokens == done.n_done * 16);
    CHECK(rig.stored(prompt) == done.n_done * 16);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    // The next request uses the same device blocks: no late copy touches them.
    rig.scribble(table);
    const tokens_t other = make_tokens(64, 8);
    rig.compute(table, other, 0, 64);
    rig.settle();
    CHECK(rig.n_right(table, other, 64) == 64);
    CHECK(rig.left_over() == "");
}

TEST_CASE("A cancelled request takes nothing from those who share its prefix") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(97);
    rig.run_request(prompt);
    const kvo_seq_t other = rig.begin(), cancelled = rig.begin();
    REQUIRE(rig.lookup(other, prompt).n == 96);
    REQUIRE(rig.lookup(cancelled, prompt).n == 96);
    const kvo_op_t load = rig.prefill(cancelled, rig.table_for(10, 97), 96);
    REQUIRE(rig.c->op_cancel(load) == KVO_OK);
    REQUIRE(rig.s->end(cancelled) == KVO_OK);
    CHECK(rig.take(load).status == KVO_E_CANCELLED);
    CHECK(rig.stored(prompt) == 96);
    const auto table = rig.table_for(30, 97);
    CHECK(rig.take(rig.prefill(other, table, 96)).status == KVO_OK);
    CHECK(rig.n_right(table, prompt, 96) == 96);
    REQUIRE(rig.s->end(other) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("A sequence that ends while its load runs leaves nothing behind") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(97);
    rig.run_request(prompt);
    for (int i = 0; i < 100; ++i) {
        const kvo_seq_t seq = rig.begin();
        REQUIRE(rig.lookup(seq, prompt).n == 96);
        const kvo_op_t load = rig.prefill(seq, rig.table_for(10, 97), 96);
        REQUIRE(rig.s->end(seq) == KVO_OK);
        const kvo_seq_t next = rig.begin();  // the same record; must not hear of the old load
        CHECK(rig.take(load).status == KVO_OK);
        CHECK(rig.info(next).n_loaded_tokens == 0);
        REQUIRE(rig.s->end(next) == KVO_OK);
    }
    CHECK(rig.left_over() == "");
}

TEST_CASE("Rejected tokens are never part of a stored block") {
    seq_rig rig;
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(0, 80);
    tokens_t all = make_tokens(46);
    REQUIRE(rig.lookup(seq, all).n == 0);
    rig.compute(table, all, 0, 46);
    REQUIRE(rig.prefilled(seq, table, 46) == KVO_OK);
    for (int round = 0; round < 8; ++round) {
        const auto n = static_cast<uint32_t>(all.size());
        // Four drafted tokens, written to the device, of which one is accepted.
        const tokens_t drafts = make_tokens(4, 100 + static_cast<uint32_t>(round));
        rig.compute(table, all + drafts, n, n + 4);
        REQUIRE(rig.s->decode(seq, drafts, n, rig.lists(table), rig.stream) == KVO_OK);
        REQUIRE(rig.s->rewind(seq, n + 1, rig.stream) == KVO_OK);
        all.push_back(drafts[0]);
        const uint32_t next = 7;
        all.push_back(next);
        rig.compute(table, all, n, n + 2);
        REQUIRE(rig.s->decode(seq, {&next, 1}, n + 2, rig.lists(table), rig.stream) == KVO_OK);
    }
    rig.settle();
    CHECK(rig.n_right(table, all, static_cast<uint32_t>(all.size())) == all.size());
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.stored(all) == all.size() / 16 * 16);
    CHECK(rig.run_request(all, 20) > 0);
}

TEST_CASE("Going back behind stored blocks holds the engine's writes until they are read") {
    for (const bool queued : {false, true}) {
        INFO("copies queued " << queued);
        seq_rig rig;
        const tokens_t first = make_tokens(64);
        const tokens_t second = tokens_t(first.begin(), first.begin() + 20) + make_tokens(44, 9);
        const kvo_seq_t seq = rig.begin();
        const auto table = rig.table_for(0, 64);
        REQUIRE(rig.lookup(seq, first).n == 0);
        rig.compute(table, first, 0, 64);
        REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
        if (queued) {
            rig.device.run_stream(rig.stream, 10);  // the gate opens, and copies are handed over
            uint32_t n = 0;
            REQUIRE(rig.c->poll(nullptr, 0, 0, &n) == KVO_OK);
        }
        REQUIRE(rig.s->rewind(seq, 20, rig.stream) == KVO_OK);
        REQUIRE(rig.lookup(seq, second, 20).result == KVO_OK);
        rig.compute(table, second, 20, 64);
        REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
        rig.settle();
        REQUIRE(rig.s->end(seq) == KVO_OK);
        CHECK(rig.stored(second) == 64);
        for (const tokens_t& tokens : {first, second}) CHECK(rig.run_request(tokens + tokens_t{1}, 20) >= 16);
        CHECK(rig.left_over() == "");
    }
}

TEST_CASE("With an idle stream a rewind says when the device blocks are free") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(64);
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(0, 64);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 64);
    rig.settle();
    REQUIRE(rig.s->prefilled(seq, 64, rig.lists(table), KVO_STREAM_IDLE) == KVO_OK);
    uint32_t n = 0;
    REQUIRE(rig.c->poll(nullptr, 0, 0, &n) == KVO_OK);  // queued, not copied
    CHECK(rig.s->rewind(seq, 16, KVO_STREAM_IDLE) == KVO_E_NOT_READY);
    CHECK(rig.info(seq).n_tokens == 16);
    rig.settle();
    CHECK(rig.s->rewind(seq, 16, KVO_STREAM_IDLE) == KVO_OK);
    CHECK(rig.stored(prompt) == 64);
}

TEST_CASE("A fork goes on with the same tokens and depends on the same load") {
    for (const bool fails : {false, true}) {
        INFO("load fails " << fails);
        seq_rig rig;
        const tokens_t prompt = make_tokens(64);
        rig.run_request(prompt);
        const kvo_seq_t seq = rig.begin();
        const auto table = rig.table_for(10, 112);
        const tokens_t all = prompt + make_tokens(36, 4);
        REQUIRE(rig.lookup(seq, all).n == 64);
        if (fails) rig.device.fail_execution = 0;
        const kvo_op_t load = rig.prefill(seq, table, 64);
        REQUIRE(rig.c->op_wait_stream(load, rig.stream, 0) == KVO_OK);
        rig.compute(table, all, 64, 100);
        kvo_seq_t fork{}, early{}, none{};
        REQUIRE(rig.s->fork(seq, 100, &fork) == KVO_OK);
        REQUIRE(rig.s->fork(seq, 0, &early) == KVO_OK);
        CHECK(rig.s->fork(seq, 101, &none) == KVO_E_RANGE);
        // The fork's own tail: blocks 0..5 shared, the partial one copied.
        auto fork_table = table;
        fork_table[6] = 50;
        rig.copy_block(table[6], 50);
        const tokens_t more = make_tokens(12, 77);
        const tokens_t forked = all + more;
        rig.compute(fork_table, forked, 100, 112);
        REQUIRE(rig.s->decode(fork, more, 112, rig.lists(fork_table), rig.stream) == KVO_OK);
        REQUIRE(rig.s->end(seq) == KVO_OK);
        CHECK((rig.take(load).status == KVO_OK) == !fails);
        CHECK((rig.info(fork).poisoned_from != UINT32_MAX) == fails);
        CHECK(rig.info(early).poisoned_from == UINT32_MAX);
        if (!fails) CHECK(rig.n_right(fork_table, forked, 112) == 112);
        if (!fails) CHECK(rig.stored(forked) == 112);
        if (fails) CHECK(rig.stored(forked) <= 64);
        REQUIRE(rig.s->end(fork) == KVO_OK);
        REQUIRE(rig.s->end(early) == KVO_OK);
        CHECK(rig.left_over() == "");
    }
}

TEST_CASE("A preempted sequence comes back through lookup with all its tokens") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(50);
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(0, 70);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 50);
    REQUIRE(rig.prefilled(seq, table, 50) == KVO_OK);
    const tokens_t answer = make_tokens(15, 3), all = prompt + answer;
    rig.compute(table, all, 50, 64);
    REQUIRE(rig.s->decode(seq, answer, 64, rig.lists(table), rig.stream) == KVO_OK);
    REQUIRE(rig.s->preempt(seq) == KVO_OK);
    rig.settle();
    CHECK(rig.info(seq).n_tokens == 65);
    const auto new_table = rig.table_for(20, 70);
    rig.scribble(new_table);
    REQUIRE(rig.lookup(seq, all).n == 64);
    CHECK(rig.take(rig.prefill(seq, new_table, 64)).status == KVO_OK);
    rig.compute(new_table, all, 64, 65);
    REQUIRE(rig.prefilled(seq, new_table, 65) == KVO_OK);
    rig.settle();
    CHECK(rig.n_right(new_table, all, 65) == 65);
    CHECK(rig.stats().stored_blocks == 4);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("The last step of a sequence that ends is stored before its blocks are written again") {
    for (const bool preempt : {false, true}) {
        seq_rig rig;
        const kvo_seq_t seq = rig.begin();
        const auto table = rig.table_for(0, 64);
        const tokens_t tokens = make_tokens(64);
        REQUIRE(rig.lookup(seq, tokens).n == 0);
        rig.compute(table, tokens, 0, 64);
        REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
        REQUIRE((preempt ? rig.s->preempt(seq) : rig.s->end(seq)) == KVO_OK);
        REQUIRE(rig.c->fence(rig.lists(table), rig.stream, KVO_FENCE_FINISH) == KVO_OK);
        rig.compute(table, make_tokens(64, 2), 0, 64);
        rig.settle();
        CHECK(rig.run_request(tokens + tokens_t{1}, 10) == 64);
    }
}

TEST_CASE("Blocks of before a reset are never stored after it") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(64);
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(0, 80);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 64);
    REQUIRE(rig.prefilled(seq, table, 48) == KVO_OK);
    REQUIRE(rig.c->reset() == KVO_OK);
    REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
    rig.settle();
    CHECK(rig.stored(prompt) == 0);
    REQUIRE(rig.s->preempt(seq) == KVO_OK);  // its device blocks are gone: it starts anew
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 64);
    REQUIRE(rig.prefilled(seq, table, 64) == KVO_OK);
    rig.settle();
    CHECK(rig.stored(prompt) == 64);
}

TEST_CASE("When token room runs out the request goes on and nothing wrong is stored") {
    rig_setup setup;
    setup.adjust = [](kvo_config_t* c) {
        c->max_seq_tokens = 64;
        c->max_seqs = 2;
    };
    seq_rig rig(setup);
    const kvo_seq_t seq = rig.begin(), second = rig.begin();
    const tokens_t prompt = make_tokens(60);
    const auto table = rig.table_for(0, 96);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 60);
    REQUIRE(rig.prefilled(seq, table, 60) == KVO_OK);
    tokens_t all = prompt;
    for (uint32_t i = 0; i < 20; ++i) {
        const auto n = static_cast<uint32_t>(all.size());
        all.push_back(i);
        rig.compute(table, all, n, n + 1);
        const status s = rig.s->decode(seq, {&i, 1}, n + 1, rig.lists(table), rig.stream);
        CHECK((s == KVO_OK ? n < 64 : (s == KVO_E_OPS_FULL && n >= 64)));
    }
    CHECK_THAT(error_text(), contains("not known"));
    REQUIRE(rig.prefilled(seq, table, 80) == KVO_OK);
    rig.settle();
    CHECK(rig.lookup(second, all).n == 0);  // a lookup needs room for its tokens, too
    kvo_seq_t third{};
    CHECK(rig.s->begin({}, KVO_SEQ_OPTIONS_INIT, &third) == KVO_E_OPS_FULL);
    CHECK_THAT(error_text(), contains("all 2 sequences"));
    REQUIRE(rig.s->rewind(seq, 62, rig.stream) == KVO_OK);
    const uint32_t token = 3;
    CHECK(rig.s->decode(seq, {&token, 1}, 62, rig.lists(table), rig.stream) == KVO_OK);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.lookup(second, tokens_t(all.begin(), all.begin() + 64)).n == 48);
    REQUIRE(rig.s->end(second) == KVO_OK);
    CHECK(rig.left_over() == "");
}

// The hooks one by one, over the real cache and the step device.
#include "support/seq_rig.hpp"

using namespace kvo;
using namespace kvo::test;

TEST_CASE("A second prompt reuses the whole blocks that it shares and gets the right bytes") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(100);
    CHECK(rig.run_request(prompt) == 0);
    CHECK(rig.run_request(prompt, 20) == 96);
    CHECK(rig.run_request(make_tokens(70) + tokens_t{5, 5, 5}, 40) == 64);
    CHECK(rig.stored(prompt) == 96);
    CHECK(rig.left_over() == "");
}

TEST_CASE("At least one prompt token is always left to compute") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(64);
    rig.run_request(prompt);
    const kvo_seq_t seq = rig.begin();
    CHECK(rig.lookup(seq, prompt).n == 48);
    CHECK(rig.lookup(seq, prompt + tokens_t{1}).n == 64);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    const kvo_seq_t all_local = rig.begin();
    const seq_rig::found f = rig.lookup(all_local, prompt, 64);
    CHECK(f.n == 63);
    CHECK(f.state == KVO_LOOKUP_MISS);
    const kvo_seq_t empty = rig.begin();
    CHECK(rig.lookup(empty, {}).n == 0);
    CHECK(rig.lookup(empty, {}, 1).result == KVO_E_RANGE);
}

TEST_CASE("Blocks that are local already are not loaded") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(100);
    rig.run_request(prompt);
    struct {
        uint32_t n_local, found, n_loaded_blocks;
    } const cases[] = {{0, 96, 6}, {16, 96, 5}, {20, 96, 5}, {95, 96, 1}, {96, 96, 0}, {99, 99, 0}};
    for (const auto& one : cases) {
        INFO("n_local " << one.n_local);
        const kvo_seq_t seq = rig.begin();
        const seq_rig::found f = rig.lookup(seq, prompt, one.n_local);
        CHECK(f.n == one.found);
        const uint64_t before = rig.stats().loaded_blocks;
        status result = KVO_OK;
        const kvo_op_t op = rig.prefill(seq, rig.table_for(30, 100), f.n / 16 * 16, &result);
        CHECK(result == KVO_OK);
        CHECK((op.value != 0) == (one.n_loaded_blocks > 0));
        if (op.value != 0) CHECK(rig.take(op).n_done == one.n_loaded_blocks);
        CHECK(rig.stats().loaded_blocks - before == one.n_loaded_blocks);
        REQUIRE(rig.s->end(seq) == KVO_OK);
    }
    CHECK(rig.left_over() == "");
}

TEST_CASE("Local device blocks inside the first loaded block are not written again") {
    rig_setup setup;
    setup.ratio = 4;
    seq_rig rig(setup);
    const tokens_t prompt = make_tokens(64);
    rig.run_request(prompt);
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(20, 64);
    rig.scribble(table);
    REQUIRE(rig.lookup(seq, prompt + tokens_t{1}, 24).n == 64);
    rig.take(rig.prefill(seq, table, 64));
    // Device blocks 0..5 are local: as they were. From token 24 on all is loaded.
    rig.compute(table, prompt, 0, 24);
    rig.settle();
    CHECK(rig.n_right(table, prompt, 64) == 64);
    CHECK(rig.stats().loaded_blocks == 3);
    rig.scribble(table);
    const kvo_seq_t other = rig.begin();
    REQUIRE(rig.lookup(other, prompt + tokens_t{1}, 18).n == 64);
    rig.take(rig.prefill(other, table, 64));
    rig.compute(table, prompt, 0, 16);
    rig.settle();
    CHECK(rig.n_right(table, prompt, 64) == 64);  // block 4 holds local tokens 16, 17 and two more
}

TEST_CASE("How a prompt is cut into chunks changes neither keys nor reuse") {
    const tokens_t prompt = make_tokens(200);
    std::vector<kvo_key_t> expected;
    const std::vector<std::vector<uint32_t>> cuts = {{200}, {100, 200}, {96, 200}, {1, 200}, {}};
    for (const auto& cut : cuts) {
        seq_rig rig;
        const kvo_seq_t seq = rig.begin();
        const auto table = rig.table_for(0, 200);
        if (cut.empty()) {
            for (uint32_t i = 0; i < 200; ++i) {
                rig.compute(table, prompt, i, i + 1);
                REQUIRE(rig.s->decode(seq, {&prompt[i], 1}, i + 1, rig.lists(table), rig.stream) == KVO_OK);
            }
        } else {
            uint32_t from = 0;
            for (const uint32_t to : cut) {
                REQUIRE(rig.lookup(seq, tokens_t(prompt.begin(), prompt.begin() + to)).n == 0);
                rig.compute(table, prompt, from, to);
                REQUIRE(rig.prefilled(seq, table, to) == KVO_OK);
                from = to;
            }
        }
        rig.settle();
        std::vector<kvo_key_t> keys(12);
        for (uint32_t i = 0; i < 12; ++i) REQUIRE(rig.s->key(seq, i, &keys[i]) == KVO_OK);
        kvo_key_t none{};
        CHECK(rig.s->key(seq, 12, &none) == KVO_E_RANGE);
        if (expected.empty()) expected = keys;
        for (uint32_t i = 0; i < 12; ++i) CHECK(std::equal(keys[i].bytes, keys[i].bytes + 32, expected[i].bytes));
        REQUIRE(rig.s->end(seq) == KVO_OK);
        CHECK(rig.run_request(prompt + tokens_t{3}, 30) == 192);
        CHECK(rig.stored(tokens_t(prompt.begin(), prompt.begin() + 150)) == 144);
    }
}

TEST_CASE("A block is offered once, when all its tokens are known and computed") {
    seq_rig rig;
    const kvo_seq_t seq = rig.begin();
    const tokens_t prompt = make_tokens(40);
    const auto table = rig.table_for(0, 80);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 40);
    REQUIRE(rig.prefilled(seq, table, 31) == KVO_OK);
    CHECK(rig.info(seq).n_stored_blocks == 1);
    REQUIRE(rig.prefilled(seq, table, 40) == KVO_OK);
    CHECK(rig.info(seq).n_stored_blocks == 2);
    tokens_t all = prompt;
    for (uint32_t i = 0; i < 9; ++i) {
        const uint32_t token = 100 + i;
        all.push_back(token);
        // The newest token is known but not computed.
        const auto n = static_cast<uint32_t>(all.size());
        rig.compute(table, all, n - 2, n - 1);
        REQUIRE(rig.s->decode(seq, {&token, 1}, n - 1, rig.lists(table), rig.stream) == KVO_OK);
        CHECK(rig.info(seq).n_stored_blocks == (n - 1 >= 48 ? 3u : 2u));
    }
    rig.settle();
    CHECK(rig.stats().stored_blocks == 3);
    REQUIRE(rig.prefilled(seq, table, 48) == KVO_OK);
    rig.settle();
    CHECK(rig.stats().store_present == 0);
    CHECK(rig.s->decode(seq, {}, 60, rig.lists(table), rig.stream) == KVO_E_RANGE);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.stored(all) == 48);
    CHECK(rig.left_over() == "");
}

TEST_CASE("A group that completes tokens late holds back its blocks") {
    rig_setup setup;
    setup.second_group_lag = 3;
    seq_rig rig(setup);
    const kvo_seq_t seq = rig.begin();
    const tokens_t prompt = make_tokens(64);
    const auto table = rig.table_for(0, 64);
    REQUIRE(rig.lookup(seq, prompt).n == 0);
    rig.compute(table, prompt, 0, 64);
    const std::pair<uint32_t, uint32_t> steps[] = {{16, 0}, {18, 0}, {19, 1}, {34, 1}, {35, 2}, {64, 3}};
    for (const auto& [n_computed, stored] : steps) {
        REQUIRE(rig.prefilled(seq, table, n_computed) == KVO_OK);
        CHECK(rig.info(seq).n_stored_blocks == stored);
    }
    rig.settle();
    CHECK(rig.stored(prompt) == 48);
}

TEST_CASE("Options say what is loaded and stored") {
    const tokens_t prompt = make_tokens(80);
    seq_rig rig;
    rig.run_request(prompt);
    const kvo_seq_t no_load = rig.begin("", KVO_SEQ_NO_LOAD);
    CHECK(rig.lookup(no_load, prompt).n == 0);
    CHECK(rig.lookup(no_load, prompt, 20).n == 20);

    const auto offered = [&rig](uint32_t flags, uint32_t max_store_tokens) {
        kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
        options.flags = flags;
        options.max_store_tokens = max_store_tokens;
        kvo_seq_t seq{};
        REQUIRE(rig.s->begin({}, options, &seq) == KVO_OK);
        const tokens_t tokens = make_tokens(80, 7);
        REQUIRE(rig.lookup(seq, tokens_t(tokens.begin(), tokens.begin() + 50)).result == KVO_OK);
        const tokens_t rest(tokens.begin() + 50, tokens.end());
        const auto table = rig.table_for(0, 80);
        REQUIRE(rig.s->decode(seq, rest, 80, rig.lists(table), rig.stream) == KVO_OK);
        const uint32_t n = rig.info(seq).n_stored_blocks;
        REQUIRE(rig.s->end(seq) == KVO_OK);
        rig.settle();
        return n;
    };
    CHECK(offered(0, KVO_DEFAULT_U32) == 5);
    CHECK(offered(KVO_SEQ_NO_STORE, KVO_DEFAULT_U32) == 0);
    CHECK(offered(KVO_SEQ_PROMPT_ONLY, KVO_DEFAULT_U32) == 3);
    CHECK(offered(0, 33) == 2);
    CHECK(offered(KVO_SEQ_PROMPT_ONLY, 16) == 1);
    kvo_seq_options_t bad = KVO_SEQ_OPTIONS_INIT;
    bad.flags = 64;
    kvo_seq_t seq{};
    CHECK(rig.s->begin({}, bad, &seq) == KVO_E_ARGUMENT);
}

TEST_CASE("A lookup may be repeated: more tokens, more found, another n_local") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(128);
    const kvo_seq_t waiting = rig.begin();
    CHECK(rig.lookup(waiting, prompt).n == 0);
    rig.run_request(tokens_t(prompt.begin(), prompt.begin() + 40));
    CHECK(rig.lookup(waiting, prompt).n == 32);
    CHECK(rig.lookup(waiting, prompt).n == 32);
    rig.run_request(tokens_t(prompt.begin(), prompt.begin() + 100), 20);
    CHECK(rig.lookup(waiting, prompt).n == 96);
    CHECK(rig.lookup(waiting, prompt, 48).n == 96);
    CHECK(rig.lookup(waiting, prompt, 112).n == 112);
    CHECK(rig.stats().tickets == 0);
    CHECK(rig.lookup(waiting, prompt).n == 96);
    CHECK(rig.lookup(waiting, prompt + make_tokens(20, 9)).n == 96);
    CHECK(rig.lookup(waiting, tokens_t(prompt.begin(), prompt.begin() + 60)).n == 48);
    tokens_t other = prompt;
    other[3] += 1;
    CHECK(rig.lookup(waiting, other).result == KVO_E_ARGUMENT);
    CHECK_THAT(error_text(), contains("token 3"));
    REQUIRE(rig.s->preempt(waiting) == KVO_OK);
    CHECK(rig.stats().blocks_pinned == 0);
    CHECK(rig.lookup(waiting, prompt).n == 96);
    REQUIRE(rig.s->end(waiting) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("Blocks whose store is running are pending and become ready") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(65);
    const kvo_seq_t first = rig.begin(), second = rig.begin();
    const auto table = rig.table_for(0, 65);
    REQUIRE(rig.lookup(first, prompt).n == 0);
    rig.compute(table, prompt, 0, 65);
    REQUIRE(rig.prefilled(first, table, 65) == KVO_OK);
    seq_rig::found f = rig.lookup(second, prompt);
    CHECK(f.n == 0);
    CHECK(f.state == KVO_LOOKUP_PENDING);
    rig.settle();
    f = rig.lookup(second, prompt);
    CHECK(f.n == 64);
    CHECK(f.state == KVO_LOOKUP_READY);
    // A pending hit goes on with what it has.
    REQUIRE(rig.s->end(first) == KVO_OK);
    REQUIRE(rig.s->end(second) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("Any leading part of a hit can be loaded, nothing else") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(100);
    rig.run_request(prompt);
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(30, 100);
    status result = KVO_OK;
    rig.prefill(seq, table, 16, &result);
    CHECK(result == KVO_E_RANGE);  // no lookup yet
    REQUIRE(rig.lookup(seq, prompt).n == 96);
    rig.prefill(seq, table, 112, &result);
    CHECK(result == KVO_E_RANGE);
    rig.prefill(seq, table, 40, &result);
    CHECK(result == KVO_E_ARGUMENT);
    rig.prefill(seq, rig.table_for(30, 40), 96, &result);
    CHECK(result == KVO_E_RANGE);
    CHECK_THAT(error_text(), contains("has 3 ids"));
    const kvo_op_t op = rig.prefill(seq, table, 48);
    CHECK(rig.stats().tickets == 0);  // the pins are the op's now
    CHECK(rig.take(op).n_done == 3);
    CHECK(rig.n_right(table, prompt, 48) == 48);
    CHECK(rig.info(seq).n_loaded_tokens == 48);
    rig.compute(table, prompt, 48, 100);
    REQUIRE(rig.prefilled(seq, table, 100) == KVO_OK);
    rig.settle();
    CHECK(rig.n_right(table, prompt, 100) == 100);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.left_over() == "");
}

TEST_CASE("Decode steps of a whole batch, each with its own status") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(31);
    const auto a_table = rig.table_for(0, 48), b_table = rig.table_for(3, 48);
    const kvo_seq_t a = rig.begin(), b = rig.begin("salt");
    for (const kvo_seq_t seq : {a, b}) {
        const auto& table = seq.value == a.value ? a_table : b_table;
        REQUIRE(rig.lookup(seq, prompt).n == 0);
        rig.compute(table, prompt, 0, 31);
        REQUIRE(rig.prefilled(seq, table, 31) == KVO_OK);
    }
    const uint32_t token = 5;
    rig.compute(a_table, prompt + tokens_t{token}, 31, 32);
    rig.compute(b_table, prompt + tokens_t{token}, 31, 32);
    const auto a_lists = rig.lists(a_table), b_lists = rig.lists(b_table);
    kvo_decode_item_t items[3] = {{a, &token, 1, 32, a_lists.data(), 1, 0},
                                  {{12345}, &token, 1, 32, b_lists.data(), 1, 0},
                                  {b, &token, 1, 32, b_lists.data(), 1, 0}};
    const uint64_t records_before = rig.device.counts.records;
    CHECK(rig.s->decode_batch(items, rig.stream) == KVO_E_HANDLE);
    CHECK_THAT(error_text(), contains("item 1"));
    CHECK(rig.device.counts.records == records_before + 1);  // two stores behind one event
    CHECK(items[0].status == KVO_OK);
    CHECK(items[1].status == KVO_E_HANDLE);
    CHECK(items[2].status == KVO_OK);
    rig.settle();
    CHECK(rig.stored(prompt + tokens_t{token}) == 32);
    CHECK(rig.stored(prompt + tokens_t{token}, "salt") == 32);
}

TEST_CASE("Stale, foreign and busy handles are told apart from good ones") {
    seq_rig rig, other;
    const kvo_seq_t seq = rig.begin();
    CHECK(other.s->end(seq) == KVO_E_HANDLE);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.s->end(seq) == KVO_E_HANDLE);
    const kvo_seq_t next = rig.begin();
    CHECK(next.value != seq.value);
    CHECK(rig.lookup(seq, make_tokens(5)).result == KVO_E_HANDLE);
    CHECK(rig.s->rewind(seq, 0, rig.stream) == KVO_E_HANDLE);
    CHECK(rig.s->preempt(kvo_seq_t{0}) == KVO_E_HANDLE);
    kvo_seq_t forked{};
    CHECK(rig.s->fork(kvo_seq_t{UINT64_MAX}, 0, &forked) == KVO_E_HANDLE);
    kvo_seq_t foreign_ns{};
    const kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
    CHECK(rig.s->begin(kvo_ns_t{987654321}, options, &foreign_ns) == KVO_E_HANDLE);
}

// Tickets: what a match pins, how pending blocks become ready or are let go, and every wrong
// handle.
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::contains;

TEST_CASE("a match finds the longest run behind what the caller holds") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3, 4});
    kvo_match_t m{};
    CHECK(f.probe({1, 2, 3, 4, 5}).n_ready == 4);
    CHECK(f.probe({1, 2, 9, 4}).n_ready == 2);
    CHECK(f.probe({9, 2, 3, 4}).n_ready == 0);
    CHECK(f.probe({9, 9, 3, 4, 5}, 2).n_ready ==
          2);  // the caller holds the first two, whatever they are
    CHECK(f.probe({1, 2, 3, 4}, 4).n_ready == 0);
    CHECK(f.match({9}, 0, &m).value == 0);
    CHECK(m.n_ready == 0);
    const auto t = f.match({1, 2, 3, 4, 5}, 1, &m);
    CHECK(m.n_ready == 3);
    CHECK(f.stats().blocks_pinned == 3);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
    CHECK(f.c->probe({}, f.keys({1}), 2, &m) == KVO_E_RANGE);
    CHECK(f.match({}, 0, &m).value == 0);
}

TEST_CASE("a probe pins nothing and changes no recency") {
    cache_fixture f({.blocks = 2});
    f.store({1}, KVO_STORE_UNCHAINED);
    f.store({2}, KVO_STORE_UNCHAINED);
    CHECK(f.probe({1}).n_ready == 1);
    f.store({3}, KVO_STORE_UNCHAINED);
    CHECK(f.here({1, 2, 3}) == "2 3");
}

TEST_CASE("pending blocks become ready as their store goes on") {
    cache_fixture f({.blocks = 8});
    f.store({1});
    const auto running = f.submit({1, 2, 3});
    kvo_match_t m{};
    const auto t = f.match({1, 2, 3, 4}, 0, &m);
    CHECK(m.n_ready == 1);
    CHECK(m.n_pending == 2);
    const std::vector<uint32_t> ids{30, 31, 32};
    kvo_op_t op{};
    CHECK(f.c->load(t, 0, 3, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) ==
          KVO_E_RANGE);
    f.settle();
    CHECK(f.take(running.op).status == KVO_OK);
    REQUIRE(f.c->ticket_poll(t, &m) == KVO_OK);
    CHECK(m.n_ready == 3);
    CHECK(m.n_pending == 0);
    CHECK(f.load(t, 3, 30).status == KVO_OK);
    CHECK(f.holds(32, 3, 0));
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("a run is cut where a store failed, and at the deadline") {
    cache_fixture f({.blocks = 8});
    f.store({1});
    kvo_match_t m{};
    SECTION("cancelled store") {
        const auto running = f.submit({1, 2, 3});
        const auto t = f.match({1, 2, 3}, 0, &m);
        CHECK(m.n_pending == 2);
        CHECK(f.c->op_cancel(running.op) == KVO_OK);
        f.settle();
        CHECK(f.take(running.op).status == KVO_E_CANCELLED);
        REQUIRE(f.c->ticket_poll(t, &m) == KVO_OK);
        CHECK(m.n_ready == 1);
        CHECK(m.n_pending == 0);
        CHECK(f.c->ticket_release(t) == KVO_OK);
        CHECK(f.stats().slots_zombie == 0);
        CHECK(f.stats().slots_free == 7);
    }
    SECTION("deadline") {
        const auto running = f.submit({1, 2, 3});
        kvo_match_options_t o = KVO_MATCH_OPTIONS_INIT;
        o.pending_deadline_ns = 1'000'000;
        kvo_ticket_t t{};
        REQUIRE(f.c->match({}, f.keys({1, 2, 3}), 0, o, {}, &t, &m) == KVO_OK);
        CHECK(m.n_pending == 2);
        REQUIRE(f.c->ticket_poll(t, &m) == KVO_OK);
        CHECK(m.n_pending == 2);
        f.device.now_ns += 2'000'000;
        REQUIRE(f.c->ticket_poll(t, &m) == KVO_OK);
        CHECK(m.n_ready == 1);
        CHECK(m.n_pending == 0);
        f.settle();
        CHECK(f.take(running.op).n_done == 2);
        CHECK(f.c->ticket_release(t) == KVO_OK);
    }
    SECTION("none wanted") {
        const auto running = f.submit({1, 2, 3});
        kvo_match_options_t o = KVO_MATCH_OPTIONS_INIT;
        o.pending_deadline_ns = 0;
        kvo_ticket_t t{};
        REQUIRE(f.c->match({}, f.keys({1, 2, 3}), 0, o, {}, &t, &m) == KVO_OK);
        CHECK(m.n_ready == 1);
        CHECK(m.n_pending == 0);
        CHECK(f.c->ticket_release(t) == KVO_OK);
        f.settle();
        CHECK(f.take(running.op).n_done == 2);
    }
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("a trimmed ticket keeps the leading blocks only") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3, 4});
    const auto t = f.match({1, 2, 3, 4});
    CHECK(f.c->ticket_trim(t, 2) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 2);
    kvo_match_t m{};
    CHECK(f.c->ticket_poll(t, &m) == KVO_OK);
    CHECK(m.n_ready == 2);
    CHECK(f.c->ticket_trim(t, 7) == KVO_OK);
    CHECK(f.c->ticket_trim(t, 0) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
    CHECK(f.c->ticket_release(t) == KVO_OK);
}

TEST_CASE("stale, foreign and twice released tickets are refused") {
    cache_fixture f, other;
    f.store({1});
    other.store({1});
    const auto t = f.match({1});
    const auto foreign = other.match({1});
    kvo_match_t m{};
    kvo_op_t op{};
    const std::vector<uint32_t> ids{1};
    for (const uint64_t value : {foreign.value, uint64_t{0}, UINT64_MAX, t.value + 1}) {
        const kvo_ticket_t bad{value};
        CHECK(f.c->ticket_poll(bad, &m) == KVO_E_HANDLE);
        CHECK(f.c->ticket_trim(bad, 0) == KVO_E_HANDLE);
        CHECK(f.c->ticket_release(bad) == KVO_E_HANDLE);
        CHECK(f.c->load(bad, 0, 1, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) ==
              KVO_E_HANDLE);
    }
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.c->ticket_release(t) == KVO_E_HANDLE);
    CHECK(other.c->ticket_release(foreign) == KVO_OK);
    CHECK(f.stats().tickets == 0);
}

TEST_CASE("tickets pin no more than allowed, and say so only when not one block could be") {
    cache_fixture f(
        {.blocks = 8, .adjust = [](kvo_config_t* c) { c->max_pinned_bytes = 3 * 4096; }});
    f.store({1, 2, 3, 4, 5});
    kvo_match_t m{};
    const auto a = f.match({1, 2, 3, 4, 5}, 0, &m);
    CHECK(m.n_ready == 3);
    const auto b = f.match({1, 2, 3, 4, 5}, 0, &m);  // the same blocks cost nothing more
    CHECK(m.n_ready == 3);
    kvo_ticket_t t{};
    CHECK(f.c->match({}, f.keys({1, 2, 3, 4, 5}), 3, KVO_MATCH_OPTIONS_INIT, {}, &t, &m) ==
          KVO_E_PINNED_FULL);
    CHECK_THAT(error_text(), contains("3 pinned of 3 allowed"));
    CHECK(f.c->match({}, f.keys({9}), 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m) == KVO_OK);
    CHECK(f.c->ticket_release(a) == KVO_OK);
    CHECK(f.c->ticket_release(b) == KVO_OK);
}

TEST_CASE("when ticket records run out a match with a hit says so and a miss stays a miss") {
    cache_fixture f({.adjust = [](kvo_config_t* c) { c->max_tickets = 2; }});
    f.store({1});
    const auto a = f.match({1}), b = f.match({1});
    kvo_ticket_t t{};
    kvo_match_t m{};
    CHECK(f.c->match({}, f.keys({1}), 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m) == KVO_E_PINNED_FULL);
    CHECK(f.c->match({}, f.keys({2}), 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m) == KVO_OK);
    CHECK(f.c->ticket_release(a) == KVO_OK);
    CHECK(f.match({1}).value != 0);
    CHECK(f.c->ticket_release(b) == KVO_OK);
}

TEST_CASE("a long chain is matched over several stretches of the lock, most recent at the root") {
    cache_fixture f({.blocks = 2000, .n_device_blocks = 2048, .part_bytes = {64}});
    std::vector<uint64_t> chain;
    for (uint64_t k = 1; k <= 1800; ++k) chain.push_back(k);
    f.store(chain);
    kvo_match_t m{};
    const auto t = f.match(chain, 700, &m);
    CHECK(m.n_ready == 1100);
    CHECK(f.stats().blocks_pinned == 1100);
    CHECK(f.load(t, 1100, 900).n_done == 1100);
    for (uint32_t i = 0; i < 1100; ++i) REQUIRE(f.holds(900 + i, 701 + i, 0));
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
    // 300 new blocks evict 100 of the chain: its end.
    std::vector<uint64_t> fresh;
    for (uint64_t k = 5001; k <= 5300; ++k) fresh.push_back(k);
    f.store(fresh);
    CHECK(f.probe(chain).n_ready == 1700);
    CHECK(f.stats().blocks_orphan == 0);
}

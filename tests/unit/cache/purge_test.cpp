// Ends of life: purge of namespaces and chains, scrubbing, reset.
#include <cstring>

#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::contains;

namespace {

kvo_ns_t open(cache_fixture& f, const char* name, uint32_t scrub = 0) {
    kvo_ns_options_t o = KVO_NS_OPTIONS_INIT;
    o.scrub = scrub;
    kvo_ns_t out{};
    REQUIRE(f.c->ns_open(name, o, &out) == KVO_OK);
    return out;
}

bool is_over(cache_fixture& f, kvo_op_t op) {
    kvo_completion_t done{};
    return f.c->op_test(op, &done) == KVO_OK && done.status == KVO_OK;
}

}  // namespace

TEST_CASE("namespaces do not see each other, and purge ends one only") {
    cache_fixture f({.blocks = 32});
    const kvo_ns_t one = open(f, "base|lora:x|1"), two = open(f, "base|lora:x2|1"),
                   base = open(f, "base");
    for (const kvo_ns_t ns : {one, two, base}) {
        f.ns = ns;
        f.store({1, 2, 3, 4, 5, 6}, 0, static_cast<uint32_t>(ns.value & 0xFFFF));
    }
    f.ns = one;
    kvo_match_t m{};
    const auto t = f.match({1, 2, 3}, 0, &m);
    kvo_op_t load{}, purge{};
    const std::vector<uint32_t> ids{20, 21, 22};
    REQUIRE(f.c->load(t, 0, 3, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &load) == KVO_OK);
    REQUIRE(f.c->purge(one, nullptr, &purge) == KVO_OK);
    CHECK(f.probe({1, 2, 3, 4, 5, 6}).n_ready == 0);  // invisible at once
    CHECK_FALSE(is_over(f, purge));                   // the load still reads its bytes
    CHECK(f.c->ticket_poll(t, &m) == KVO_E_HANDLE);   // the idle ticket is revoked
    f.settle();
    CHECK(f.take(load).n_done == 3);  // old bytes for the old request
    CHECK(f.holds(20, 1, static_cast<uint32_t>(one.value & 0xFFFF)));
    CHECK(is_over(f, purge));
    f.ns = open(f, "base|lora:x|2");
    CHECK(f.probe({1, 2, 3}).n_ready == 0);
    f.ns = two;
    CHECK(f.probe({1, 2, 3, 4, 5, 6}).n_ready == 6);
    f.ns = base;
    CHECK(f.probe({1, 2, 3, 4, 5, 6}).n_ready == 6);
    CHECK(f.stats().purged_blocks == 6);
    CHECK(f.stats().slots_free == 32 - 12);
}

TEST_CASE("a purged chain takes all below it and nothing beside it") {
    cache_fixture f({.blocks = 32});
    f.store({1, 2, 3, 4});
    f.store({1, 2, 13, 14});
    f.store({1, 22});
    kvo_op_t op{};
    const kvo_key_t two = f.key(2), nowhere = f.key(99);
    REQUIRE(f.c->purge({}, &two, &op) == KVO_OK);
    CHECK(is_over(f, op));
    CHECK(f.here({1, 2, 3, 4, 13, 14, 22}) == "1 22");
    REQUIRE(f.c->purge({}, &nowhere, &op) == KVO_OK);
    CHECK(is_over(f, op));
    CHECK(f.here({1, 22}) == "1 22");
    CHECK(f.stats().blocks_orphan == 0);
}

TEST_CASE("a long chain is purged over several stretches of the lock") {
    cache_fixture f({.blocks = 3000, .n_device_blocks = 3000, .part_bytes = {64}});
    std::vector<uint64_t> chain;
    for (uint64_t k = 1; k <= 2500; ++k) chain.push_back(k);
    f.store(chain);
    kvo_op_t op{};
    const kvo_key_t middle = f.key(1000);
    REQUIRE(f.c->purge({}, &middle, &op) == KVO_OK);
    CHECK(is_over(f, op));
    CHECK(f.probe(chain).n_ready == 999);
    CHECK(f.stats().blocks_resident == 999);
    REQUIRE(f.c->purge({}, nullptr, &op) == KVO_OK);
    CHECK(is_over(f, op));
    CHECK(f.stats().slots_free == 3000);
}

TEST_CASE("keys given as their own ancestors do not hang a purge") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3});
    f.store({3, 1});
    f.store({2, 3, 1, 2});
    kvo_op_t op{};
    for (const uint64_t k : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
        const kvo_key_t key = f.key(k);
        REQUIRE(f.c->purge({}, &key, &op) == KVO_OK);
        CHECK(is_over(f, op));
    }
    CHECK(f.stats().blocks_resident == 0);
}

TEST_CASE("a store that runs when its namespace is purged never becomes visible") {
    cache_fixture f({.blocks = 8});
    const auto s = f.submit({1, 2});
    kvo_op_t purge{};
    REQUIRE(f.c->purge({}, nullptr, &purge) == KVO_OK);
    CHECK_FALSE(is_over(f, purge));
    const auto again = f.submit({1, 2});  // a new life of the same keys
    CHECK(again.text() == "TT");
    f.settle();
    const kvo_completion_t done = f.take(s.op);
    CHECK(done.status == KVO_E_DROPPED);
    CHECK(done.n_done == 0);
    CHECK(f.take(again.op).n_done == 2);
    CHECK(is_over(f, purge));
    CHECK(f.here({1, 2}) == "1 2");
    CHECK(f.stats().slots_free == 6);
}

TEST_CASE("a viewed ticket keeps its bytes through a purge, which waits for it") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2});
    const auto t = f.match({1, 2});
    const void* data = nullptr;
    uint64_t bytes = 0;
    REQUIRE(f.c->view(t, 1, 0, &data, &bytes) == KVO_OK);
    CHECK(bytes == 4096);
    std::vector<uint8_t> before(bytes);
    std::memcpy(before.data(), data, bytes);
    kvo_op_t purge{};
    REQUIRE(f.c->purge({}, nullptr, &purge) == KVO_OK);
    f.store({11, 12, 13, 14, 15, 16, 17, 18}, KVO_STORE_UNCHAINED);
    CHECK(std::memcmp(before.data(), data, bytes) == 0);
    CHECK_FALSE(is_over(f, purge));
    CHECK(f.stats().slots_zombie == 2);
    CHECK(f.c->view(t, 0, 0, &data, &bytes) == KVO_E_DROPPED);
    kvo_op_t op{};
    const std::vector<uint32_t> ids{20, 21};
    CHECK(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) ==
          KVO_E_DROPPED);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(is_over(f, purge));
    CHECK(f.stats().slots_zombie == 0);
}

TEST_CASE("a namespace that is purged while a load of it runs: old bytes or a miss, others stay") {
    for (const bool queued : {false, true}) {
        INFO("copies queued before the purge: " << queued);
        cache_fixture f({.blocks = 8});
        kvo_ns_t other{};
        REQUIRE(f.c->ns_open("other", KVO_NS_OPTIONS_INIT, &other) == KVO_OK);
        f.store({1, 2});
        f.ns = other;
        f.store({1, 2}, 0, 7);
        f.ns = {};
        const auto t = f.match({1, 2});
        kvo_op_t load{}, purge{};
        const std::vector<uint32_t> ids{20, 21};
        REQUIRE(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &load) ==
                KVO_OK);
        uint32_t n = 0;
        if (queued) {
            f.device.run();
            REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
        }
        REQUIRE(f.c->purge({}, nullptr, &purge) == KVO_OK);
        CHECK(f.here({1, 2}).empty());
        f.settle();
        const kvo_completion_t done = f.take(load);
        for (uint32_t i = 0; i < done.first_bad && i < done.n_blocks; ++i)
            CHECK(f.holds(20 + i, 1 + i, 0));
        CHECK(f.take(purge).status == KVO_OK);
        CHECK(f.stats().slots_free == 6);
        f.ns = other;
        CHECK(f.here({1, 2}) == "1 2");
        REQUIRE(f.c->ticket_release(f.match({1, 2})) == KVO_OK);
    }
}

TEST_CASE("a scrubbed namespace leaves zeroes behind, and a purge of it completes only then") {
    cache_fixture f({.blocks = 4, .part_bytes = {200 * 1024}});
    f.ns = open(f, "secret", 1);
    f.store({1, 2, 3});
    const auto t = f.match({1, 2, 3});
    std::vector<const uint8_t*> at;
    for (uint32_t i = 0; i < 3; ++i) {
        const void* data = nullptr;
        uint64_t bytes = 0;
        REQUIRE(f.c->view(t, i, 0, &data, &bytes) == KVO_OK);
        at.push_back(static_cast<const uint8_t*>(data));
    }
    kvo_op_t purge{};
    REQUIRE(f.c->purge(f.ns, nullptr, &purge) == KVO_OK);
    CHECK_FALSE(is_over(f, purge));
    REQUIRE(f.c->ticket_release(t) == KVO_OK);
    CHECK_FALSE(is_over(f, purge));  // three slots of 200 KiB take some steps
    CHECK(f.stats().slots_zombie > 0);
    for (int i = 0; i < 100; ++i) {
        uint32_t n = 0;
        REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
    }
    CHECK(is_over(f, purge));
    for (const uint8_t* p : at) CHECK(std::count(p, p + 200 * 1024, uint8_t{0}) == 200 * 1024);
    CHECK(f.stats().slots_free == 4);
}

TEST_CASE("room that still waits for its zeroes is no reason to refuse a store") {
    cache_fixture f({.blocks = 4, .part_bytes = {200 * 1024}});
    f.ns = open(f, "secret", 1);
    f.store({1, 2, 3, 4});
    kvo_op_t purge{};
    REQUIRE(f.c->purge(f.ns, nullptr, &purge) == KVO_OK);
    const auto s = f.submit({5, 6, 7, 8}, KVO_STORE_UNCHAINED);
    CHECK(s.text() == "TTTT");
    CHECK(is_over(f, purge));  // the zeroing was done on the way
    f.settle();
    CHECK(f.take(s.op).n_done == 4);
    CHECK(f.store({9, 10}, KVO_STORE_UNCHAINED).text() == "TT");  // evicts and zeroes two
    CHECK(f.here({5, 6, 7, 8, 9, 10}) == "7 8 9 10");
}

TEST_CASE("reset forgets everything and lets nothing of before in") {
    cache_fixture f({.blocks = 16});
    f.store({1, 2, 3});
    const auto t = f.match({1, 2, 3});
    kvo_op_t load{}, waiting{};
    const std::vector<uint32_t> ids{20, 21, 22}, more{23, 24, 25};
    REQUIRE(f.c->load(t, 0, 3, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &load) == KVO_OK);
    f.device.run();
    uint32_t n = 0;
    REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);  // its copies are queued
    REQUIRE(f.c->load(t, 0, 3, f.lists(more), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &waiting) ==
            KVO_OK);
    const auto s = f.submit({4, 5}, KVO_STORE_UNCHAINED);
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    REQUIRE(f.c->reserve({}, f.keys({7, 8}), nullptr, KVO_STORE_OPTIONS_INIT, &r, &v) == KVO_OK);
    const uint64_t before = f.c->generation();
    REQUIRE(f.c->reset() == KVO_OK);
    CHECK(f.c->generation() == before + 1);
    CHECK(f.here({1, 2, 3, 4, 5, 7, 8}).empty());
    kvo_match_t m{};
    CHECK(f.c->ticket_poll(t, &m) == KVO_E_HANDLE);
    kvo_op_t op{};
    REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);  // accepted, and dropped
    // A store of the new life that depends on a load of the old one must not get in either.
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.after = &load;
    o.n_after = 1;
    kvo_op_t dependent{};
    const std::vector<uint32_t> src{30};
    REQUIRE(f.c->store({}, f.keys({9}), nullptr, f.lists(src), f.stream, o, {}, &r, &dependent) ==
            KVO_OK);
    f.settle();
    CHECK(f.take(load).status == KVO_E_DROPPED);
    CHECK(f.take(waiting).status == KVO_E_DROPPED);
    CHECK(f.take(s.op).status == KVO_E_DROPPED);
    CHECK(f.take(op).status == KVO_E_DROPPED);
    CHECK(f.take(dependent).status == KVO_E_DEPENDENCY);
    CHECK(f.here({4, 5, 9}).empty());
    const kvo_stats_t stats = f.stats();
    CHECK(stats.slots_free == 16);
    CHECK(stats.blocks_pinned + stats.tickets + stats.reservations == 0);
    CHECK(f.store({1, 2, 3}).text() == "TTT");
    CHECK(f.probe({1, 2, 3}).n_ready == 3);
}

TEST_CASE("addresses that were handed out outlive a reset and are nobody else's") {
    cache_fixture f({.blocks = 4});
    f.store({1});
    const auto t = f.match({1});
    const void* seen = nullptr;
    uint64_t bytes = 0;
    REQUIRE(f.c->view(t, 0, 0, &seen, &bytes) == KVO_OK);
    const std::vector<uint8_t> before(static_cast<const uint8_t*>(seen),
                                      static_cast<const uint8_t*>(seen) + bytes);
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    REQUIRE(f.c->reserve({}, f.keys({2}), nullptr, KVO_STORE_OPTIONS_INIT, &r, &v) == KVO_OK);
    void* mine = nullptr;
    REQUIRE(f.c->slot(v, 0, 0, &mine, &bytes) == KVO_OK);
    REQUIRE(f.c->reset() == KVO_OK);

    // Two of four slots are still held, so only two more blocks fit.
    CHECK(f.store({5, 6, 7}, KVO_STORE_UNCHAINED).text() == "TTF");
    CHECK(std::equal(before.begin(), before.end(), static_cast<const uint8_t*>(seen)));
    std::fill_n(static_cast<uint8_t*>(mine), bytes, uint8_t{0xEE});
    const auto others = f.match({5});
    const void* other = nullptr;
    REQUIRE(f.c->view(others, 0, 0, &other, &bytes) == KVO_OK);
    CHECK(*static_cast<const uint8_t*>(other) != 0xEE);
    REQUIRE(f.c->ticket_release(others) == KVO_OK);

    kvo_op_t op{};
    const std::vector<uint32_t> ids{20};
    CHECK(f.c->load(t, 0, 1, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) ==
          KVO_E_DROPPED);
    CHECK(f.c->abort(v) == KVO_OK);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().slots_free == 2);
    CHECK(f.here({1, 2}).empty());
}

TEST_CASE("events tell what was removed and why") {
    cache_fixture f({.blocks = 2});
    f.store({1, 2});
    f.removed_and_stored();
    kvo_op_t op{};
    const kvo_key_t two = f.key(2);
    REQUIRE(f.c->purge({}, &two, &op) == KVO_OK);
    f.take(op);
    f.store({3, 4}, KVO_STORE_UNCHAINED);
    REQUIRE(f.c->reset() == KVO_OK);
    kvo_event_t e[8];
    uint32_t n = 0;
    uint64_t lost = 0;
    REQUIRE(f.c->events_poll(e, 8, &n, &lost) == KVO_OK);
    REQUIRE(n == 6);
    CHECK(e[0].kind == KVO_EVENT_REMOVED);
    CHECK(e[0].reason == KVO_REMOVED_PURGED);
    CHECK(e[1].reason == KVO_REMOVED_EVICTED);
    CHECK(e[2].kind == KVO_EVENT_STORED);
    CHECK(e[4].reason == KVO_REMOVED_RESET);
    CHECK(f.stats().evicted_blocks == 1);
    CHECK(f.stats().evicted_before_reuse == 1);
}

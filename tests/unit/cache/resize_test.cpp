// Growing and shrinking at run time, and memory that comes in the background.
#include <cstring>

#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::contains;

namespace {

std::vector<uint64_t> numbers(uint64_t first, uint64_t n) {
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < n; ++i) out.push_back(first + i);
    return out;
}

const uint8_t* address(cache_fixture& f, uint64_t key) {
    const auto t = f.match({key});
    const void* data = nullptr;
    uint64_t bytes = 0;
    REQUIRE(f.c->view(t, 0, 0, &data, &bytes) == KVO_OK);
    REQUIRE(f.c->ticket_release(t) == KVO_OK);
    return static_cast<const uint8_t*>(data);
}

}  // namespace

TEST_CASE("after every resize exactly the blocks of kvo_capacity fit") {
    cache_fixture f({.blocks = 1, .part_bytes = {1 << 20}, .max_blocks = 8});
    CHECK(f.capacity().blocks_now == 1);
    CHECK(f.store({1}).text() == "T");
    const uint8_t* const base = address(f, 1);
    REQUIRE(f.c->resize(f.budget_for(8)) == KVO_OK);
    CHECK(f.capacity().blocks_now == 8);
    CHECK(f.store(numbers(1, 8)).text() == "PTTTTTTT");
    CHECK(f.probe(numbers(1, 8)).n_ready == 8);
    CHECK(address(f, 1) == base);
    REQUIRE(f.c->resize(f.budget_for(4)) == KVO_OK);
    CHECK(f.capacity().blocks_now == 4);
    CHECK(f.probe(numbers(1, 8)).n_ready == 4);  // leaves went before their parents
    CHECK(f.stats().pool_touched_bytes == 4 << 20);
    CHECK(f.stats().blocks_orphan == 0);
    REQUIRE(f.c->resize(f.budget_for(8)) == KVO_OK);
    CHECK(f.store(numbers(11, 4)).text() == "TTTT");
    CHECK(f.probe(numbers(1, 4)).n_ready == 4);
    CHECK(f.probe(numbers(11, 4)).n_ready == 4);
    CHECK(f.stats().store_refused_full == 0);
    const kvo_stats_t s = f.stats();
    CHECK(s.pool_touched_bytes + s.metadata_bytes <= s.budget_bytes);
}

TEST_CASE("blocks that lie in the part given back move and keep their bytes") {
    cache_fixture f({.blocks = 64, .n_device_blocks = 128, .part_bytes = {4096}});
    f.store(numbers(1, 60), 0, 9);
    kvo_op_t op{};
    // Free the low slots, so that what stays lies high.
    std::vector<std::pair<const uint8_t*, uint64_t>> by_address;
    for (const uint64_t k : numbers(1, 60)) by_address.emplace_back(address(f, k), k);
    REQUIRE(f.c->purge({}, nullptr, &op) == KVO_OK);
    f.take(op);
    f.store(numbers(101, 50), KVO_STORE_UNCHAINED, 1);
    f.store(numbers(201, 10), 0, 9);
    for (const uint64_t k : numbers(101, 50)) {
        const kvo_key_t key = f.key(k);
        REQUIRE(f.c->purge({}, &key, &op) == KVO_OK);
        f.take(op);
    }
    REQUIRE(f.c->resize(f.budget_for(12)) == KVO_OK);
    CHECK(f.capacity().blocks_now == 12);
    CHECK(f.probe(numbers(201, 10)).n_ready == 10);
    const auto t = f.match(numbers(201, 10));
    CHECK(f.load(t, 10, 80).n_done == 10);
    for (uint32_t i = 0; i < 10; ++i) CHECK(f.holds(80 + i, 201 + i, 9));
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().evicted_blocks == 0);
    CHECK(f.stats().pool_touched_bytes == 12 * 4096);
    CHECK(f.stats().slots_free == 2);
}

TEST_CASE("moving blocks changes no recency") {
    cache_fixture f({.blocks = 16, .n_device_blocks = 64, .part_bytes = {4096}});
    f.store(numbers(1, 8), KVO_STORE_UNCHAINED);
    kvo_op_t op{};
    f.store(numbers(21, 8), KVO_STORE_UNCHAINED);
    for (const uint64_t k : numbers(1, 8)) {
        const kvo_key_t key = f.key(k);
        REQUIRE(f.c->purge({}, &key, &op) == KVO_OK);
        f.take(op);
    }
    REQUIRE(f.c->resize(f.budget_for(8)) == KVO_OK);  // moves all eight
    CHECK(f.here(numbers(21, 8)) == "21 22 23 24 25 26 27 28");
    f.store({31, 32}, KVO_STORE_UNCHAINED);
    CHECK(f.here(numbers(21, 8)) == "23 24 25 26 27 28");
}

TEST_CASE("a shrink waits for pinned blocks and never moves them") {
    cache_fixture f({.blocks = 8, .part_bytes = {4096}});
    f.store(numbers(1, 8), KVO_STORE_UNCHAINED, 2);
    std::vector<kvo_ticket_t> tickets;
    std::vector<const void*> at;
    for (const uint64_t k : numbers(1, 8)) {
        tickets.push_back(f.match({k}));
        const void* data = nullptr;
        uint64_t bytes = 0;
        REQUIRE(f.c->view(tickets.back(), 0, 0, &data, &bytes) == KVO_OK);
        at.push_back(data);
    }
    REQUIRE(f.c->resize(f.budget_for(2)) == KVO_OK);
    CHECK(f.stats().blocks_resident == 8);
    CHECK(f.submit({50}, KVO_STORE_UNCHAINED).text() == "F");
    for (uint32_t i = 0; i < 8; ++i) {
        const void* data = nullptr;
        uint64_t bytes = 0;
        REQUIRE(f.c->view(tickets[i], 0, 0, &data, &bytes) == KVO_OK);
        CHECK(data == at[i]);
    }
    for (const kvo_ticket_t t : tickets) REQUIRE(f.c->ticket_release(t) == KVO_OK);
    for (int i = 0; i < 50; ++i) {
        uint32_t n = 0;
        REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
    }
    CHECK(f.stats().blocks_resident == 2);
    CHECK(f.stats().pool_touched_bytes == 2 * 4096);
    CHECK(f.store({61, 62, 63}, KVO_STORE_UNCHAINED).text() == "TTF");
}

TEST_CASE("wrong budgets are refused with the numbers and change nothing") {
    cache_fixture f({.blocks = 4, .max_blocks = 8});
    CHECK(f.c->resize(f.config.max_bytes + 1) == KVO_E_RANGE);
    CHECK_THAT(error_text(), contains("above max_bytes"));
    CHECK(f.c->resize(1000) == KVO_E_BUDGET);
    CHECK_THAT(error_text(), contains("give at least"));
    CHECK(f.capacity().blocks_now == 4);
    CHECK(f.capacity().budget_bytes == f.config.budget_bytes);
}

TEST_CASE("while set-up is paused no memory comes, afterwards all of it") {
    cache_fixture f({.blocks = 4, .max_blocks = 16});
    CHECK(f.c->setup_resume() == KVO_E_STATE);
    REQUIRE(f.c->setup_pause() == KVO_OK);
    REQUIRE(f.c->resize(f.budget_for(16)) == KVO_OK);
    f.settle();
    CHECK(f.capacity().blocks_now == 4);
    CHECK(f.capacity().blocks_target == 16);
    REQUIRE(f.c->setup_resume() == KVO_OK);
    uint32_t n = 0;
    for (int i = 0; i < 10; ++i) REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
    CHECK(f.capacity().blocks_now == 16);
}

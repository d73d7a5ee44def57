// Scenarios that a well-known offloading manager is tested with, at block level, and where ours is
// meant to differ. Keys without parents (its keys have none either), capacity of a few blocks, LRU.
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::cache_setup;

namespace {
constexpr uint32_t kFree = KVO_STORE_UNCHAINED;
}

TEST_CASE("ten steps over four blocks of LRU end with the known blocks") {
    cache_fixture f;
    const auto first = f.submit({1, 2}, kFree);
    CHECK(first.text() == "TT");
    CHECK(f.probe({1, 2}).n_pending == 2);  // on its way, not announced
    CHECK(f.removed_and_stored().empty());
    f.settle();
    CHECK(f.take(first.op).n_done == 2);
    CHECK(f.removed_and_stored() == "+1 +2");
    CHECK(f.here({1, 2, 3}) == "1 2");

    const auto second = f.submit({2, 3, 4, 5}, kFree);
    CHECK(second.text() == "PTTT");
    CHECK(f.removed_and_stored() == "-1");
    // There the whole call [1, 6] is refused while three stores are pending; ours takes what it
    // can: 2 may leave, 6 then finds nothing.
    const auto third = f.submit({1, 6}, kFree);
    CHECK(third.text() == "TF");
    f.settle();
    CHECK(f.here({0, 1, 2, 3, 4, 5}) == "1 3 4 5");
    CHECK(f.take(second.op).n_done == 3);
    CHECK(f.take(third.op).n_done == 1);
}

TEST_CASE("blocks that a load uses are never victims") {
    cache_fixture f;
    f.store({2, 3, 4, 5}, kFree);
    f.removed_and_stored();
    const auto ticket2 = f.match({2});
    const auto ticket3 = f.match({3});
    const auto stored = f.store({6, 7, 8}, kFree);
    CHECK(stored.text() ==
          "TTF");  // 4 and 5 leave; the third finds only pinned blocks and new ones
    CHECK(f.removed_and_stored() == "-4 -5 +6 +7");
    CHECK(f.c->ticket_release(ticket2) == KVO_OK);
    CHECK(f.c->ticket_release(ticket3) == KVO_OK);
    CHECK(f.here({2, 3, 6, 7}) == "2 3 6 7");
}

TEST_CASE("what was touched stays, the least recent leaves") {
    cache_fixture f;
    f.store({2, 3, 6, 8}, kFree);
    f.touch({3, 6, 2});
    f.removed_and_stored();
    CHECK(f.store({9}, kFree).text() == "T");
    CHECK(f.removed_and_stored() == "-8 +9");
}

TEST_CASE("a block that is here already is not evicted by the call that names it") {
    cache_fixture f;
    f.store({1, 2}, kFree);
    f.touch({1});
    f.removed_and_stored();
    CHECK(f.store({2, 3, 4, 5}, kFree).text() == "PTTT");
    CHECK(f.here({1, 2, 3, 4, 5}) == "2 3 4 5");
}

TEST_CASE("every removal is announced before the store that uses its room") {
    cache_fixture f({.blocks = 2});
    f.store({1, 2}, kFree);
    f.removed_and_stored();
    f.store({3}, kFree);
    CHECK(f.removed_and_stored() == "-1 +3");
}

TEST_CASE("bytes come back as they were stored") {
    cache_fixture f({.blocks = 8, .ratio = 2, .part_bytes = {512, 1024, 64}, .more_groups = {256}});
    f.store({1, 2, 3, 4, 5}, 0, 7);
    kvo_match_t found{};
    const auto ticket = f.match({1, 2, 3, 4, 5}, 0, &found);
    CHECK(found.n_ready == 5);
    const auto done = f.load(ticket, 5, 10);
    CHECK(done.status == KVO_OK);
    CHECK(done.n_done == 5);
    CHECK(done.first_bad == 5);
    for (uint32_t i = 0; i < 5; ++i) CHECK(f.holds(10 + i, i + 1, 7));
    CHECK(f.c->ticket_release(ticket) == KVO_OK);
}

// Raw slots: reservations, commits, aborts, and opaque groups beside device groups.
#include <cstring>

#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;

namespace {

kvo_reservation_t reserve(cache_fixture& f, const std::vector<uint64_t>& keys,
                          uint32_t expect_taken) {
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.flags = KVO_STORE_UNCHAINED;
    REQUIRE(f.c->reserve({}, f.keys(keys), nullptr, o, &r, &v) == KVO_OK);
    CHECK(r.n_taken == expect_taken);
    return v;
}

uint8_t* slot(cache_fixture& f, kvo_reservation_t v, uint32_t i, uint32_t group = 0) {
    void* data = nullptr;
    uint64_t bytes = 0;
    REQUIRE(f.c->slot(v, i, group, &data, &bytes) == KVO_OK);
    return static_cast<uint8_t*>(data);
}

void write_and_commit(cache_fixture& f, kvo_reservation_t v, uint32_t n,
                      const std::string& letters) {
    for (uint32_t i = 0; i < n; ++i) std::memset(slot(f, v, i), letters[i], 4096);
    kvo_op_t op{};
    REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).n_done == n);
}

char first_byte(cache_fixture& f, uint64_t key) {
    const auto t = f.match({key});
    if (t.value == 0) return '-';
    const void* data = nullptr;
    uint64_t bytes = 0;
    REQUIRE(f.c->view(t, 0, 0, &data, &bytes) == KVO_OK);
    const char out = *static_cast<const char*>(data);
    REQUIRE(f.c->ticket_release(t) == KVO_OK);
    return out;
}

}  // namespace

TEST_CASE("aborted reservations never touch what is committed, and an open one is never a victim") {
    cache_fixture f({.blocks = 4});
    write_and_commit(f, reserve(f, {1, 2, 3}, 3), 3, "abc");
    for (int i = 0; i < 5; ++i) {
        const auto v = reserve(f, {10}, 1);
        std::memset(slot(f, v, 0), 'x', 4096);
        CHECK(f.c->abort(v) == KVO_OK);
        CHECK(f.c->abort(v) == KVO_E_HANDLE);
    }
    write_and_commit(f, reserve(f, {4}, 1), 1, "d");
    const uint64_t all[] = {1, 2, 3, 4};
    for (uint32_t i = 0; i < 4; ++i) CHECK(first_byte(f, all[i]) == "abcd"[i]);

    const auto open = reserve(f, {5}, 1);  // evicts one
    std::memset(slot(f, open, 0), 'e', 4096);
    CHECK(f.store({20, 21, 22, 23}, KVO_STORE_UNCHAINED).text() == "TTTF");
    kvo_op_t op{};
    REQUIRE(f.c->commit(open, f.stream, &op) == KVO_OK);
    CHECK(f.c->commit(open, f.stream, &op) == KVO_E_HANDLE);
    f.settle();
    CHECK(first_byte(f, 5) == 'e');
}

TEST_CASE("a commit becomes visible only after the stream has come that far") {
    cache_fixture f({.blocks = 4});
    const auto v = reserve(f, {1}, 1);
    static char* where;
    where = reinterpret_cast<char*>(slot(f, v, 0));
    f.device.launch(
        f.stream, [](void*) { *where = 'z'; }, nullptr);
    kvo_op_t op{};
    REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);
    uint32_t n = 0;
    for (int i = 0; i < 5; ++i) REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
    CHECK(f.here({1}).empty());
    f.settle();
    CHECK(f.take(op).n_done == 1);
    CHECK(first_byte(f, 1) == 'z');
}

TEST_CASE("a reservation tells which keys got room and refuses the others") {
    cache_fixture f({.blocks = 3});
    f.store({1});
    const auto v = reserve(f, {1, 2, 3, 4}, 2);
    void* data = nullptr;
    uint64_t bytes = 0;
    CHECK(f.c->slot(v, 0, 0, &data, &bytes) == KVO_E_RANGE);  // here already
    CHECK(f.c->slot(v, 1, 0, &data, &bytes) == KVO_OK);
    CHECK(f.c->slot(v, 2, 0, &data, &bytes) == KVO_OK);
    CHECK(f.c->slot(v, 3, 0, &data, &bytes) == KVO_E_RANGE);  // full
    CHECK(f.c->slot(v, 4, 0, &data, &bytes) == KVO_E_RANGE);
    CHECK(f.c->slot(v, 1, 1, &data, &bytes) == KVO_E_RANGE);
    CHECK(f.c->slot({v.value + 1}, 1, 0, &data, &bytes) == KVO_E_HANDLE);
    CHECK(f.stats().reservations == 1);
    CHECK(f.c->abort(v) == KVO_OK);
    CHECK(f.stats().slots_free == 2);
}

TEST_CASE("a commit that finds no op record leaves the reservation as it was") {
    cache_fixture f({.blocks = 8, .adjust = [](kvo_config_t* c) { c->max_ops = 1; }});
    const auto v = reserve(f, {1, 2}, 2);
    std::memset(slot(f, v, 0), 'q', 4096);
    const auto s = f.submit({9});
    kvo_op_t op{};
    CHECK(f.c->commit(v, f.stream, &op) == KVO_E_OPS_FULL);
    CHECK(f.c->commit(v, f.device.capturing, &op) == KVO_E_CAPTURING);
    f.settle();
    f.take(s.op);
    REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).n_done == 2);
    CHECK(first_byte(f, 1) == 'q');
}

TEST_CASE("a commit that finds no block record leaves the reservation as it was") {
    cache_fixture f({.blocks = 8, .adjust = [](kvo_config_t* c) { c->max_inflight_blocks = 4; }});
    const auto v = reserve(f, {1, 2, 3}, 3);
    std::memset(slot(f, v, 2), 'r', 4096);
    const auto s = f.submit({11, 12});
    kvo_op_t op{};
    CHECK(f.c->commit(v, f.stream, &op) == KVO_E_OPS_FULL);
    CHECK(f.here({1, 2, 3}).empty());
    f.settle();
    f.take(s.op);
    REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).n_done == 3);
    CHECK(first_byte(f, 3) == 'r');
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("an opaque group is filled by a reservation beside a store of the device groups") {
    cache_fixture f({.blocks = 4, .part_bytes = {256}, .opaque_bytes = 40});
    f.store({1});
    CHECK(f.here({1}).empty());  // one of its groups is missing
    const auto v = reserve(f, {1}, 1);
    void* data = nullptr;
    uint64_t bytes = 0;
    CHECK(f.c->slot(v, 0, 0, &data, &bytes) == KVO_E_RANGE);  // has its bytes already
    REQUIRE(f.c->slot(v, 0, 1, &data, &bytes) == KVO_OK);
    CHECK(bytes == 40);
    std::memset(data, 's', bytes);
    SECTION("committed") {
        kvo_op_t op{};
        REQUIRE(f.c->commit(v, f.stream, &op) == KVO_OK);
        f.settle();
        CHECK(f.take(op).n_done == 1);
        CHECK(f.here({1}) == "1");
        const auto t = f.match({1});
        const void* view = nullptr;
        REQUIRE(f.c->view(t, 0, 1, &view, &bytes) == KVO_OK);
        CHECK(static_cast<const char*>(view)[39] == 's');
        CHECK(f.load(t, 1, 7).n_done == 1);
        CHECK(f.holds(7, 1, 0));
        CHECK(f.c->ticket_release(t) == KVO_OK);
    }
    SECTION("aborted") {
        CHECK(f.c->abort(v) == KVO_OK);
        CHECK(f.here({1}).empty());
        CHECK(f.stats().blocks_resident == 1);
    }
    CHECK(f.stats().blocks_pinned == 0);
}

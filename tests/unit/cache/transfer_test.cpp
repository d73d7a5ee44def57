// Copies that fail, are cancelled or fenced: what stays in the cache, and that nothing wrong gets
// in.
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;

namespace {

kvo_op_t load(cache_fixture& f, kvo_ticket_t t, uint32_t n, const std::vector<uint32_t>& ids,
              void* stream) {
    kvo_op_t op{};
    CHECK(f.c->load(t, 0, n, f.lists(ids), stream, KVO_LOAD_OPTIONS_INIT, {}, &op) == KVO_OK);
    return op;
}

struct write_job {
    cache_fixture* f;
    uint32_t block;
    uint64_t key;
    uint32_t version;
    static void run(void* self) {
        const auto* w = static_cast<write_job*>(self);
        w->f->fill(w->block, w->key, w->version);
    }
};

}  // namespace

TEST_CASE("a load that fails half way names the first bad block and drops only what is suspect") {
    cache_fixture f({.blocks = 8, .part_bytes = {64, 64, 64, 64}});
    f.store({1, 2, 3, 4}, 0, 3);
    const auto t = f.match({1, 2, 3, 4});
    const kvo_op_t op = load(f, t, 4, {10, 11, 12, 13}, f.stream);
    // Fails the third block: the pieces of one slice run in a random order, so by content.
    f.device.fail_execution = 9;
    f.settle();
    const kvo_completion_t done = f.take(op);
    CHECK(done.status == KVO_E_TRANSFER);
    CHECK(done.n_blocks == 4);
    uint32_t right = 0, first_wrong = 4;
    for (uint32_t i = 4; i-- > 0;) {
        if (f.holds(10 + i, i + 1, 3)) {
            ++right;
        } else {
            first_wrong = i;
        }
    }
    CHECK(done.n_done <= right);  // what is said to be done is what a byte check finds
    CHECK(done.first_bad <= first_wrong);
    CHECK(f.probe({1, 2, 3, 4}).n_ready == done.first_bad);
    CHECK(f.stats().dropped_suspect >= 1);
    kvo_match_t m{};
    CHECK(f.c->ticket_release(t) == KVO_OK);
    // The next request uses the same device blocks for its own data: no late copy touches them.
    for (uint32_t i = 0; i < 4; ++i) f.fill(10 + i, 100 + i, 0);
    f.settle();
    for (uint32_t i = 0; i < 4; ++i) CHECK(f.holds(10 + i, 100 + i, 0));
    const auto again = f.match({1, 2, 3, 4}, 0, &m);
    CHECK(m.n_ready == done.first_bad);
    if (again.value != 0) CHECK(f.c->ticket_release(again) == KVO_OK);
}

TEST_CASE("cancel, deadline and errors of the device side never drop a block") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3});
    const auto t = f.match({1, 2, 3});
    kvo_op_t op{};
    const std::vector<uint32_t> ids{10, 11, 12};
    status expected = KVO_OK;
    SECTION("cancel") {
        op = load(f, t, 3, ids, f.stream);
        CHECK(f.c->op_cancel(op) == KVO_OK);
        expected = KVO_E_CANCELLED;
    }
    SECTION("deadline") {
        kvo_load_options_t o = KVO_LOAD_OPTIONS_INIT;
        o.deadline_ns = 1000;
        REQUIRE(f.c->load(t, 0, 3, f.lists(ids), f.stream, o, {}, &op) == KVO_OK);
        f.device.now_ns += 1'000'000;
        expected = KVO_E_DEADLINE;
    }
    SECTION("fence") {
        op = load(f, t, 3, ids, f.stream);
        CHECK(f.c->fence(f.lists(ids), f.stream, KVO_FENCE_DROP) == KVO_OK);
        expected = KVO_E_DROPPED;
    }
    f.settle();
    const kvo_completion_t done = f.take(op);
    CHECK(done.status == expected);
    CHECK(done.n_done == 0);
    CHECK(done.first_bad == 0);
    CHECK(f.probe({1, 2, 3}).n_ready == 3);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("a load keeps its blocks though its ticket is released and the cache is under pressure") {
    cache_fixture f({.blocks = 4});
    f.store({1, 2}, 0, 5);
    const auto t = f.match({1, 2});
    const kvo_op_t op = load(f, t, 2, {40, 41}, f.stream);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    const auto more = f.submit({11, 12, 13, 14}, KVO_STORE_UNCHAINED);
    CHECK(more.text() == "TTFF");
    f.settle();
    CHECK(f.take(op).n_done == 2);
    CHECK(f.holds(40, 1, 5));
    CHECK(f.holds(41, 2, 5));
    f.take(more.op);
}

TEST_CASE("a device block is the target of one load at a time") {
    cache_fixture f;
    f.store({1, 2});
    const auto t = f.match({1, 2});
    const kvo_op_t op = load(f, t, 2, {10, 11}, f.stream);
    kvo_op_t other{};
    const std::vector<uint32_t> ids{12, 11};
    CHECK(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &other) ==
          KVO_E_BUSY);
    f.settle();
    CHECK(f.take(op).n_done == 2);
    CHECK(f.load(t, 2, 12).n_done == 2);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
    CHECK(f.stats().fence_entries == 0);
}

TEST_CASE("what was computed from a failed load never gets into the cache") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3});
    const auto t = f.match({1, 2, 3});
    const kvo_op_t loaded = load(f, t, 3, {10, 11, 12}, f.stream);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    // The engine has queued its next step already, on top of what the load is about to bring.
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.after = &loaded;
    o.n_after = 1;
    kvo_store_result_t r{};
    kvo_op_t stored{};
    const std::vector<uint32_t> ids{20, 21};
    const kvo_key_t parent = f.key(3);
    REQUIRE(f.c->store({}, f.keys({4, 5}), &parent, f.lists(ids), f.stream, o, {}, &r, &stored) ==
            KVO_OK);
    CHECK(r.n_taken == 2);
    SECTION("a copy fails") {
        f.device.fail_batch = 0;  // loads are queued first
        f.settle();
        CHECK(f.take(loaded).status == KVO_E_TRANSFER);
    }
    SECTION("the load is cancelled") {
        CHECK(f.c->op_cancel(loaded) == KVO_OK);
        f.settle();
        CHECK(f.take(loaded).status == KVO_E_CANCELLED);
    }
    const kvo_completion_t done = f.take(stored);
    CHECK(done.status == KVO_E_DEPENDENCY);
    CHECK(done.n_done == 0);
    CHECK(f.here({4, 5}).empty());
    CHECK(f.stats().store_blocks_dependency == 2);
    CHECK(f.stats().blocks_writing == 0);
    // And a store that names the failed load later is refused at once.
    REQUIRE(f.c->store({}, f.keys({4, 5}), &parent, f.lists(ids), f.stream, o, {}, &r, &stored) ==
            KVO_E_DEPENDENCY);
}

TEST_CASE("a cancelled request does not evict the prefix that others share") {
    cache_fixture f({.blocks = 6});
    f.store({1, 2, 3});
    const auto mine = f.match({1, 2, 3}), theirs = f.match({1, 2, 3});
    const kvo_op_t op = load(f, mine, 3, {10, 11, 12}, f.stream);
    CHECK(f.c->op_cancel(op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).status == KVO_E_CANCELLED);
    CHECK(f.c->ticket_release(mine) == KVO_OK);
    CHECK(f.load(theirs, 3, 20).n_done == 3);
    CHECK(f.c->ticket_release(theirs) == KVO_OK);
    CHECK(f.probe({1, 2, 3}).n_ready == 3);
}

TEST_CASE("a store that fails is gone without a trace, and what hung on it is never served") {
    cache_fixture f({.blocks = 8, .part_bytes = {64, 64}});
    const auto s = f.submit({1, 2, 3, 4});
    f.device.fail_execution = 3;
    f.settle();
    const kvo_completion_t done = f.take(s.op);
    CHECK(done.status == KVO_E_TRANSFER);
    CHECK(f.probe({1, 2, 3, 4}).n_ready == done.first_bad);
    const kvo_stats_t st = f.stats();
    CHECK(st.blocks_resident + st.slots_free == 8);
    CHECK(st.blocks_writing == 0);
    f.store({1, 2, 3, 4});  // comes whole again
    CHECK(f.probe({1, 2, 3, 4}).n_ready == 4);
    CHECK(f.stats().blocks_orphan == 0);
}

TEST_CASE("a fence lets our read end before the next owner of a block writes") {
    cache_fixture f({.blocks = 4});
    write_job final_bytes{&f, 7, 70, 1}, next_owner{&f, 7, 71, 2};
    f.device.launch(f.stream, write_job::run, &final_bytes);  // a step that is queued, not run
    kvo_op_t op{};
    kvo_store_result_t r{};
    const std::vector<uint32_t> ids{7};
    REQUIRE(f.c->store({}, f.keys({70}), nullptr, f.lists(ids), f.stream, KVO_STORE_OPTIONS_INIT,
                       {}, &r, &op) == KVO_OK);
    void* const other = f.device.make_stream();
    void* engine_stream = f.stream;
    SECTION("on the same stream") {}
    SECTION("on another stream") { engine_stream = other; }
    CHECK(f.c->fence(f.lists(ids), engine_stream, KVO_FENCE_FINISH) == KVO_OK);
    f.device.launch(engine_stream, write_job::run, &next_owner);
    f.settle();
    f.device.run();
    CHECK(f.take(op).n_done == 1);
    CHECK(f.holds(7, 71, 2));
    const auto t = f.match({70});
    CHECK(f.load(t, 1, 30).n_done == 1);
    CHECK(f.holds(30, 70, 1));  // the final bytes of the first owner
    CHECK(f.c->ticket_release(t) == KVO_OK);
}

TEST_CASE("destroy waits for copies of either direction and every op completes once") {
    for (int which = 0; which < 4; ++which) {
        cache_fixture f({.blocks = 8});
        f.store({1, 2, 3, 4});
        std::vector<kvo_op_t> ops;
        const auto t = f.match({1, 2, 3, 4});
        if (which != 0) ops.push_back(load(f, t, 4, {10, 11, 12, 13}, f.stream));
        if (which != 1) ops.push_back(f.submit({5, 6, 7, 8}, KVO_STORE_UNCHAINED).op);
        uint32_t n = 0;
        f.device.run();                                   // the gates fire
        REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);  // queues the copies
        if (which == 3) f.device.fail_execution = 2;
        CHECK(f.c->shutdown(1000) == KVO_E_TIMEOUT);
        for (int i = 0; i < 100; ++i) {
            f.device.run();
            REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
        }
        CHECK(f.c->shutdown(0) == KVO_OK);
        CHECK(f.device.idle());
        std::vector<kvo_completion_t> all(8);
        REQUIRE(f.c->poll(all.data(), 8, 0, &n) == KVO_OK);
        CHECK(n == ops.size());
        CHECK(f.c->ticket_release(t) == KVO_OK);
        CHECK(f.c->may_destroy(0) == KVO_OK);
    }
}

TEST_CASE("device loss ends every op once and leaves nothing pinned") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2});
    const auto t = f.match({1, 2});
    const kvo_op_t op = load(f, t, 2, {10, 11}, f.stream);
    const auto s = f.submit({3, 4});
    f.device.lost = true;
    f.settle();
    CHECK(f.take(op).status == KVO_E_DEVICE_LOST);
    CHECK(f.take(s.op).status == KVO_E_DEVICE_LOST);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.stats().blocks_pinned == 0);
    CHECK(f.submit({9}).result == KVO_E_DEVICE_LOST);
}

TEST_CASE("a group that is detached takes no part until it is attached again, elsewhere") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2}, 0, 4);
    const auto t = f.match({1, 2});
    const kvo_op_t op = load(f, t, 2, {10, 11}, f.stream);
    const auto s = f.submit({3});
    CHECK(f.c->group_attach(0, nullptr, 0) == KVO_E_STATE);
    CHECK(f.c->group_detach(1) == KVO_E_RANGE);
    REQUIRE(f.c->group_detach(0) == KVO_OK);
    CHECK(f.take(op).status == KVO_E_DROPPED);
    CHECK(f.take(s.op).status == KVO_E_DROPPED);
    CHECK(f.c->group_detach(0) == KVO_E_STATE);
    kvo_op_t refused{};
    const std::vector<uint32_t> ids{10, 11};
    CHECK(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &refused) ==
          KVO_E_STATE);
    CHECK(f.submit({3}).result == KVO_E_STATE);
    CHECK(f.probe({1, 2}).n_ready == 2);  // host contents stay
    std::vector<uint8_t> elsewhere(64 * 4096);
    kvo_part_t part{elsewhere.data(), 8192, 4096, 0, 1, 0};
    CHECK(f.c->group_attach(0, &part, 1) == KVO_E_LAYOUT);
    part.block_stride = 4096;
    CHECK(f.c->group_attach(0, &part, 2) == KVO_E_LAYOUT);
    REQUIRE(f.c->group_attach(0, &part, 1) == KVO_OK);
    CHECK(f.load(t, 2, 10).n_done == 2);
    f.fill(50, 1, 4);
    std::vector<uint8_t> expected(4096);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(std::vector<uint8_t>(elsewhere.begin() + 10 * 4096, elsewhere.begin() + 11 * 4096) !=
          expected);
}

TEST_CASE("nothing is left after many requests that end in every way") {
    cache_fixture f({.blocks = 64, .n_device_blocks = 256, .part_bytes = {64}});
    std::mt19937_64 random(7);
    kvo_stats_t first{};
    for (int round = 0; round < 2; ++round) {
        for (uint64_t request = 0; request < 2000; ++request) {
            const uint64_t n_blocks = 2 + request % 3, base = 1 + random() % 40 * 100;
            std::vector<uint64_t> chain;
            for (uint64_t i = 0; i < n_blocks; ++i) chain.push_back(base + i);
            kvo_match_t m{};
            const auto t = f.match(chain, 0, &m);
            std::vector<uint32_t> ids;
            for (uint32_t i = 0; i < m.n_ready; ++i)
                ids.push_back(static_cast<uint32_t>(100 + request % 16 * 8) + i);
            kvo_op_t op{};
            if (t.value != 0) {
                REQUIRE(f.c->load(t, 0, m.n_ready, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT,
                                  {}, &op) == KVO_OK);
                if (request % 10 == 0) (void)f.c->op_cancel(op);
                REQUIRE(f.c->ticket_release(t) == KVO_OK);
            }
            const auto s = f.submit(chain);
            REQUIRE(s.result == KVO_OK);
            if (request % 10 == 5) (void)f.c->op_cancel(s.op);
            if (request % 7 == 0) f.settle();
            kvo_completion_t done[8];
            uint32_t n = 0;
            f.device.run();
            REQUIRE(f.c->poll(done, 8, 0, &n) == KVO_OK);
            if (request % 8 == 7) {
                f.settle();
                do {
                    REQUIRE(f.c->poll(done, 8, 0, &n) == KVO_OK);
                } while (n > 0);
            }
        }
        f.settle();
        const kvo_stats_t s = f.stats();
        CHECK(s.blocks_pinned == 0);
        CHECK(s.reservations + s.tickets + s.ops_active + s.fence_entries + s.completions_waiting ==
              0);
        CHECK(s.slots_free + s.blocks_resident == 64);
        CHECK(s.slots_zombie == 0);
        if (round == 0) first = s;
        if (round == 1) CHECK(s.slots_free == first.slots_free);
    }
}

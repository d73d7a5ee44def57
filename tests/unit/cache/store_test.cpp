// Stores: which keys are taken, why the others are not, and what a full cache gives up.
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::contains;

namespace {

constexpr uint32_t kFree = KVO_STORE_UNCHAINED;

std::vector<uint64_t> numbers(uint64_t first, uint64_t n) {
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < n; ++i) out.push_back(first + i);
    return out;
}

// A store with everything spelled out; the completion is taken when `settle`.
cache_fixture::stored store_under(cache_fixture& f, const std::vector<uint64_t>& keys,
                                  const uint64_t* parent, uint32_t parents_held,
                                  const std::vector<uint32_t>& ids) {
    cache_fixture::stored out;
    out.verdicts.resize(keys.size(), 99);
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.parents_held = parents_held;
    o.verdicts = out.verdicts.data();
    kvo_key_t parent_key{};
    if (parent != nullptr) parent_key = f.key(*parent);
    out.result = f.c->store({}, f.keys(keys), parent != nullptr ? &parent_key : nullptr,
                            f.lists(ids), f.stream, o, {}, &out.counts, &out.op);
    f.settle();
    return out;
}

}  // namespace

TEST_CASE("each key gets its verdict") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2});
    const auto running = f.submit({1, 2, 3});
    const auto mixed = f.submit({1, 2, 3, 4, 4, 5});
    CHECK(mixed.text() == "PPWTDT");
    CHECK(mixed.counts.n_taken == 2);
    CHECK(mixed.counts.n_present == 4);
    CHECK(mixed.counts.n_refused == 0);
    f.settle();
    const kvo_completion_t done = f.take(mixed.op);
    CHECK(done.n_blocks == 2);
    CHECK(done.n_done == 2);
    CHECK(done.first_bad == 2);
    CHECK(f.take(running.op).n_done == 1);
    CHECK(f.probe({1, 2, 3, 4, 5}).n_ready == 5);
}

TEST_CASE("a hole is not read, and what follows it is an orphan unless its parent is here") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2, 3});
    const uint32_t none = KVO_NO_BLOCK;
    // 1 2 3 are here already: their holes don't matter. 4 is missing, so 5 has no parent.
    CHECK(store_under(f, {1, 2, 3, 4, 5}, nullptr, 0, {none, none, none, none, 7}).text() ==
          "PPPHO");
    CHECK(store_under(f, {1, 2, 3, 4, 5}, nullptr, 0, {none, none, none, 6, none}).text() ==
          "PPPTH");
    CHECK(f.probe({1, 2, 3, 4, 5}).n_ready == 4);
}

TEST_CASE("a block whose parent is neither here nor held is refused") {
    cache_fixture f({.blocks = 8});
    const uint64_t gone = 99, here = 1;
    f.store({1});
    CHECK(store_under(f, {5, 6}, &gone, 0, {5, 6}).text() == "OO");
    CHECK(store_under(f, {5, 6}, &here, 0, {5, 6}).text() == "TT");
    CHECK(store_under(f, {7, 8}, &gone, 1, {5, 6}).text() == "TT");
    CHECK(f.stats().store_refused_orphan == 2);
    CHECK(f.probe({1, 5, 6}).n_ready == 3);
    CHECK(f.probe({99, 7, 8}, 1).n_ready == 2);  // the caller holds the parent
    CHECK(f.probe({99, 7, 8}).n_ready == 0);
}

TEST_CASE("a full cache takes the beginning of a chain") {
    cache_fixture f({.blocks = 4});
    const auto one = f.store(numbers(1, 7));
    CHECK(one.text() == "TTTTFFF");
    CHECK(one.counts.n_refused == 3);
    CHECK(f.probe(numbers(1, 7)).n_ready == 4);
    CHECK(f.stats().store_refused_full == 3);
}

TEST_CASE("with everything pinned a store is refused at once and completes") {
    cache_fixture f({.blocks = 3});
    f.store({1, 2, 3});
    const auto t = f.match({1, 2, 3});
    const auto refused = f.submit({7, 8});
    CHECK(refused.result == KVO_OK);
    CHECK(refused.text() == "FF");
    const kvo_completion_t done = f.take(refused.op);  // there without any progress
    CHECK(done.status == KVO_OK);
    CHECK(done.n_blocks == 0);
    CHECK(f.stats().evicted_blocks == 0);
    CHECK(f.c->ticket_release(t) == KVO_OK);
    CHECK(f.store({7, 8}).text() == "TT");
    CHECK(f.here({1, 2, 3, 7, 8}) == "1 7 8");  // children left before their parent
}

TEST_CASE("empty slots are used before anything is evicted") {
    cache_fixture f({.blocks = 4});
    f.store({1}, kFree);
    f.store({2}, kFree);
    f.store({3}, kFree);
    f.store({4}, kFree);
    SECTION("after a purge") {
        kvo_op_t op{};
        const kvo_key_t three = f.key(3);
        REQUIRE(f.c->purge({}, &three, &op) == KVO_OK);
        CHECK(f.take(op).kind == KVO_OP_PURGE);
    }
    SECTION("after a load that failed and dropped its block") {
        const auto t = f.match({3});
        f.device.fail_execution = 0;
        CHECK(f.load(t, 1, 9).status == KVO_E_TRANSFER);
        CHECK(f.c->ticket_release(t) == KVO_OK);
    }
    SECTION("after a store that was cancelled") {
        kvo_op_t op{};
        const kvo_key_t three = f.key(3);
        REQUIRE(f.c->purge({}, &three, &op) == KVO_OK);
        f.take(op);
        const auto cancelled = f.submit({9}, kFree);
        CHECK(f.c->op_cancel(cancelled.op) == KVO_OK);
        CHECK(f.take(cancelled.op).status == KVO_E_CANCELLED);
    }
    SECTION("after a reservation that was aborted") {
        kvo_op_t op{};
        const kvo_key_t three = f.key(3);
        REQUIRE(f.c->purge({}, &three, &op) == KVO_OK);
        f.take(op);
        kvo_store_result_t r{};
        kvo_reservation_t v{};
        REQUIRE(f.c->reserve({}, f.keys({9}), nullptr, KVO_STORE_OPTIONS_INIT, &r, &v) == KVO_OK);
        CHECK(f.c->abort(v) == KVO_OK);
    }
    CHECK(f.store({5}, kFree).text() == "T");
    CHECK(f.here({1, 2, 4, 5}) == "1 2 4 5");
    CHECK(f.stats().evicted_blocks == 0);
}

TEST_CASE("a call evicts nothing of its own chain, however large it is") {
    cache_fixture f({.blocks = 1024, .n_device_blocks = 1100, .part_bytes = {64}});
    f.store({5000}, kFree);
    f.store(numbers(1, 1023));
    SECTION("the one foreign block may leave") {
        const auto r = f.store(numbers(1, 1025));
        CHECK(r.counts.n_present == 1023);
        CHECK(r.counts.n_taken == 1);
        CHECK(r.counts.n_refused == 1);
        CHECK(f.here({5000}).empty());
        CHECK(f.stats().evicted_blocks == 1);
        CHECK(f.probe(numbers(1, 1025)).n_ready == 1024);
    }
    SECTION("the one foreign block is pinned") {
        const auto t = f.match({5000});
        const auto r = f.store(numbers(1, 1025));
        CHECK(r.counts.n_taken == 0);
        CHECK(r.counts.n_refused == 2);
        CHECK(f.stats().evicted_blocks == 0);
        CHECK(f.c->ticket_release(t) == KVO_OK);
        CHECK(f.probe(numbers(1, 1025)).n_ready == 1023);
    }
}

TEST_CASE("more keys than blocks, over several stretches of the lock") {
    cache_fixture f({.blocks = 700, .n_device_blocks = 2048, .part_bytes = {64}});
    const auto r = f.store(numbers(1, 2000));
    CHECK(r.counts.n_taken == 700);
    CHECK(r.counts.n_refused == 1300);
    CHECK(f.probe(numbers(1, 2000)).n_ready == 700);
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("two stores of the same keys take one slot each key and both complete") {
    cache_fixture f({.blocks = 8});
    const auto a = f.submit({1, 2, 3, 4});
    SECTION("all four the same") {
        const auto b = f.submit({1, 2, 3, 4});
        CHECK(b.text() == "WWWW");
        CHECK(f.take(b.op).n_blocks == 0);
    }
    SECTION("three of four the same") {
        const auto b = f.submit({1, 2, 3, 5});
        CHECK(b.text() == "WWWT");
        f.settle();
        CHECK(f.take(b.op).n_done == 1);
    }
    SECTION("duplicates inside the call") {
        const auto b = f.submit({6, 6, 7, 6});
        CHECK(b.text() == "TDTD");
        f.settle();
        CHECK(f.take(b.op).n_done == 2);
    }
    f.settle();
    CHECK(f.take(a.op).n_done == 4);
    const kvo_stats_t s = f.stats();
    CHECK(s.blocks_resident + s.slots_free == 8);
    CHECK(s.fence_entries == 0);
}

TEST_CASE("empty lists are legal and complete at once") {
    cache_fixture f;
    const auto s = f.submit({});
    CHECK(s.result == KVO_OK);
    CHECK(f.take(s.op).n_blocks == 0);
    f.store({1});
    const auto t = f.match({1});
    kvo_op_t op{};
    REQUIRE(f.c->load(t, 0, 0, {}, f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) == KVO_OK);
    CHECK(f.take(op).n_blocks == 0);
    CHECK(f.c->ticket_release(t) == KVO_OK);
}

TEST_CASE("when in-flight records run out the rest of a store is refused") {
    cache_fixture f({.blocks = 16, .adjust = [](kvo_config_t* c) { c->max_inflight_blocks = 3; }});
    const auto r = f.store(numbers(1, 5));
    CHECK(r.text() == "TTTRR");
}

TEST_CASE("wrong arguments of a store are refused before anything is evicted") {
    cache_fixture f({.blocks = 2});
    f.store({1, 2});
    kvo_store_result_t r{};
    kvo_op_t op{};
    const auto keys = f.keys({8, 9});
    const std::vector<uint32_t> ids{1, 2};
    const auto call = [&](const kvo_store_options_t& o, const std::vector<uint32_t>& list,
                          void* stream, kvo_ns_t ns) {
        return f.c->store(ns, keys, nullptr, f.lists(list), stream, o, {}, &r, &op);
    };
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    CHECK(call(o, {1}, f.stream, {}) == KVO_E_ARGUMENT);
    CHECK(call(o, {1, 64}, f.stream, {}) == KVO_E_RANGE);
    CHECK(call(o, ids, f.stream, {77}) == KVO_E_HANDLE);
    CHECK(call(o, ids, f.device.capturing, {}) == KVO_E_CAPTURING);
    CHECK(call(o, ids, reinterpret_cast<void*>(uintptr_t{0x7777}), {}) == KVO_E_ARGUMENT);
    CHECK(f.c->store({}, keys, nullptr, {}, f.stream, o, {}, &r, &op) == KVO_E_ARGUMENT);
    CHECK(f.c->store({}, keys, nullptr, f.lists(ids), f.stream, o, {}, nullptr, nullptr) ==
          KVO_E_ARGUMENT);
    o.flags = 64;
    CHECK(call(o, ids, f.stream, {}) == KVO_E_ARGUMENT);
    o = KVO_STORE_OPTIONS_INIT;
    o.struct_size = 3;
    CHECK(call(o, ids, f.stream, {}) == KVO_E_STRUCT);
    o = KVO_STORE_OPTIONS_INIT;
    o.n_after = 9;
    CHECK(call(o, ids, f.stream, {}) == KVO_E_ARGUMENT);
    o.n_after = 1;
    CHECK(call(o, ids, f.stream, {}) == KVO_E_ARGUMENT);
    const kvo_op_t unknown{12345678};
    o.after = &unknown;
    CHECK(call(o, ids, f.stream, {}) == KVO_E_HANDLE);
    const kvo_stats_t s = f.stats();
    CHECK(s.evicted_blocks == 0);
    CHECK(s.ops_active == 0);
    CHECK(f.here({1, 2}) == "1 2");
}

TEST_CASE("detached stores only count") {
    cache_fixture f;
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.flags = KVO_OP_DETACHED;
    const std::vector<uint32_t> ids{0, 1};
    f.fill(0, 1, 0);
    f.fill(1, 2, 0);
    for (int i = 0; i < 200; ++i) {  // more often than there are records
        REQUIRE(f.c->store({}, f.keys({1, 2}), nullptr, f.lists(ids), f.stream, o, {}, nullptr,
                           nullptr) == KVO_OK);
        f.settle();
    }
    CHECK(f.stats().store_ops == 200);
    CHECK(f.stats().completions_waiting == 0);
    CHECK(f.here({1, 2}) == "1 2");
}

TEST_CASE("a group that an entry lacks is added when a later store brings it") {
    cache_fixture f({.blocks = 4, .part_bytes = {256}, .more_groups = {128}});
    f.fill(0, 1, 0);
    const std::vector<uint32_t> ids{0};
    const kvo_blocks_t first{0, 1, ids.data()}, second{1, 1, ids.data()};
    kvo_store_result_t r{};
    kvo_op_t op{};
    uint8_t verdict = 99;
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.verdicts = &verdict;
    REQUIRE(f.c->store({}, f.keys({1}), nullptr, {&first, 1}, f.stream, o, {}, &r, &op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).n_done == 1);
    CHECK(f.here({1}).empty());  // half a block is no block
    SECTION("and copied") {
        REQUIRE(f.c->store({}, f.keys({1}), nullptr, f.lists(ids), f.stream, o, {}, &r, &op) ==
                KVO_OK);
        CHECK(verdict == KVO_STORE_TAKEN);
        CHECK(f.here({1}).empty());
        f.settle();
        CHECK(f.take(op).n_done == 1);
        const auto t = f.match({1});
        CHECK(f.load(t, 1, 5).status == KVO_OK);
        CHECK(f.holds(5, 1, 0));
        CHECK(f.c->ticket_release(t) == KVO_OK);
    }
    SECTION("but not when its copy fails") {
        f.device.fail_execution = 0;
        REQUIRE(f.c->store({}, f.keys({1}), nullptr, {&second, 1}, f.stream, o, {}, &r, &op) ==
                KVO_OK);
        f.settle();
        CHECK(f.take(op).status == KVO_E_TRANSFER);
        CHECK(f.here({1}).empty());
        CHECK(f.stats().blocks_resident == 1);
    }
    SECTION("once, however many stores bring it") {
        kvo_op_t again{};
        REQUIRE(f.c->store({}, f.keys({1}), nullptr, {&second, 1}, f.stream, o, {}, &r, &op) ==
                KVO_OK);
        REQUIRE(f.c->store({}, f.keys({1}), nullptr, {&second, 1}, f.stream, o, {}, &r, &again) ==
                KVO_OK);
        CHECK(verdict == KVO_STORE_PENDING);
        f.settle();
        CHECK(f.take(op).n_done == 1);
        CHECK(f.take(again).n_blocks == 0);
        CHECK(f.here({1}) == "1");
    }
    CHECK(f.stats().blocks_pinned == 0);
}

TEST_CASE("a child that was stored before its parent came is found below it later") {
    cache_fixture f({.blocks = 8});
    const uint64_t gone = 1;
    REQUIRE(store_under(f, {2, 3}, &gone, 1, {2, 3}).text() == "TT");
    CHECK(f.store({1, 2, 3}).text() == "TPP");
    CHECK(f.probe({1, 2, 3}).n_ready == 3);
    kvo_op_t op{};
    const kvo_key_t root = f.key(1);
    REQUIRE(f.c->purge({}, &root, &op) == KVO_OK);
    CHECK(f.stats().blocks_resident == 0);  // they hang on it now
}

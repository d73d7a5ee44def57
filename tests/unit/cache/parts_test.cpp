// The small pieces the cache is made of: handles, runs, purge waits, the event ring, namespaces.
#include <random>
#include <set>

#include "cache/event_ring.hpp"
#include "cache/handles.hpp"
#include "cache/namespaces.hpp"
#include "cache/purge_queue.hpp"
#include "cache/runs.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;
using kvo::test::contains;

TEST_CASE("a handle is good once, in its own cache only") {
    handle_pool<int> mine, other;
    mine.reset(2, 1);
    other.reset(2, 2);
    uint64_t a = 0, b = 0, c = 0, foreign = 0;
    REQUIRE(mine.take(&a) != nullptr);
    REQUIRE(mine.take(&b) != nullptr);
    CHECK(mine.take(&c) == nullptr);
    REQUIRE(other.take(&foreign) != nullptr);
    CHECK(mine.find(foreign) == nullptr);
    CHECK(mine.find(0) == nullptr);
    CHECK(mine.find(UINT64_MAX) == nullptr);
    mine.give(a);
    CHECK(mine.find(a) == nullptr);
    REQUIRE(mine.take(&c) != nullptr);
    CHECK(c != a);
    CHECK(mine.find(a) == nullptr);
    CHECK(mine.find(b) != nullptr);
    CHECK(mine.n_used() == 2);
}

TEST_CASE("runs over shared pages behave like vectors") {
    std::mt19937_64 random(kvo::test::seed());
    run_room room;
    constexpr uint32_t kPages = 5;
    room.reset(kPages);
    std::vector<id_run> runs(4);
    std::vector<std::vector<uint32_t>> model(4);
    uint32_t refused = 0;
    for (int step = 0; step < 20000; ++step) {
        const size_t r = random() % 4;
        const auto what = random() % 100;
        if (what < 55) {
            const auto value = static_cast<uint32_t>(random());
            if (room.push(runs[r], value)) {
                model[r].push_back(value);
            } else {
                ++refused;
            }
        } else if (what < 97 && !model[r].empty()) {
            CHECK(room.pop(runs[r]) == model[r].back());
            model[r].pop_back();
        } else if (what >= 97) {
            room.clear(runs[r]);
            model[r].clear();
        }
        REQUIRE(runs[r].n == model[r].size());
        if (model[r].empty()) continue;
        const auto from = static_cast<uint32_t>(random() % model[r].size());
        auto forward = room.at(runs[r], from), back = room.at(runs[r], from);
        for (uint32_t i = from; i < model[r].size(); ++i) {
            REQUIRE(*forward == model[r][i]);
            if (i + 1 < model[r].size()) ++forward;
        }
        for (uint32_t i = from + 1; i-- > 0;) {
            REQUIRE(*back == model[r][i]);
            if (i > 0) --back;
        }
    }
    CHECK(refused > 100);  // the pages did run out now and then
}

TEST_CASE("a purge waits for what was removed before it, not for what is removed later") {
    purge_queue q;
    q.reset(4);
    ns_record ns;
    op_index op{};
    const uint8_t first = purge_queue::removed(ns);
    q.wait(ns, op_index{1});
    CHECK_FALSE(q.take_done(&op));
    const uint8_t later = purge_queue::removed(ns);
    q.gone(ns, first);
    REQUIRE(q.take_done(&op));
    CHECK(op == op_index{1});
    q.wait(ns, op_index{2});  // waits for `later`
    CHECK_FALSE(q.take_done(&op));
    const uint8_t last = purge_queue::removed(ns);
    q.wait(ns, op_index{3});  // must wait for `later` and `last`
    q.gone(ns, later);
    REQUIRE(q.take_done(&op));
    CHECK(op == op_index{2});
    CHECK_FALSE(q.take_done(&op));
    q.gone(ns, last);
    REQUIRE(q.take_done(&op));
    CHECK(op == op_index{3});
    q.wait(ns, op_index{0});  // nothing to wait for
    CHECK(q.take_done(&op));
    CHECK_FALSE(q.take_done(&op));
}

TEST_CASE("purges of random removals end exactly when their last removal is gone") {
    std::mt19937_64 random(kvo::test::seed());
    purge_queue q;
    q.reset(1000);
    ns_record ns;
    struct removal {
        uint8_t side;
        uint64_t time;
    };
    std::vector<removal> alive;
    std::set<std::pair<uint64_t, uint32_t>> open;  // time, op
    uint64_t now = 0;
    uint32_t next_op = 0, ended = 0;
    for (int step = 0; step < 20000; ++step) {
        ++now;
        const auto what = random() % 10;
        if (what < 4) {
            alive.push_back({purge_queue::removed(ns), now});
        } else if (what < 8 && !alive.empty()) {
            const size_t i = random() % alive.size();
            q.gone(ns, alive[i].side);
            alive[i] = alive.back();
            alive.pop_back();
        } else if (open.size() < 900) {
            open.emplace(now, next_op % 1000);
            q.wait(ns, op_index{next_op++ % 1000});
        }
        op_index op{};
        while (q.take_done(&op)) {
            ++ended;
            const auto it = std::find_if(open.begin(), open.end(),
                                         [&](auto& o) { return o.second == raw(op); });
            REQUIRE(it != open.end());
            for (const removal& r : alive) REQUIRE(r.time > it->first);
            open.erase(it);
        }
    }
    for (const removal& r : alive) q.gone(ns, r.side);
    op_index op{};
    while (q.take_done(&op)) ++ended;
    CHECK(ended == next_op);
    CHECK(ended > 1000);
}

TEST_CASE("the event ring keeps the newest and counts the lost") {
    event_ring ring;
    ring.reset(2);
    kvo_event_t e{}, out[4];
    for (uint8_t i = 0; i < 5; ++i) {
        e.key.bytes[0] = i;
        ring.add(e);
    }
    uint64_t lost = 0;
    REQUIRE(ring.take(out, 4, &lost) == 2);
    CHECK(lost == 3);
    CHECK(out[0].key.bytes[0] == 3);
    CHECK(out[1].key.bytes[0] == 4);
    CHECK(ring.take(out, 4, &lost) == 0);
    CHECK(lost == 0);
}

TEST_CASE("namespaces are found by their whole name") {
    namespace_table table(1 << 20, 5);
    const kvo_ns_options_t plain = KVO_NS_OPTIONS_INIT;
    kvo_ns_options_t scrub = plain;
    scrub.scrub = 1;
    kvo_ns_t a{}, b{}, c{}, again{};
    REQUIRE(table.open("base|lora:x|1", plain, &a) == KVO_OK);
    REQUIRE(table.open("base|lora:x|2", plain, &b) == KVO_OK);
    REQUIRE(table.open("base|lora:x", plain, &c) == KVO_OK);
    REQUIRE(table.open("base|lora:x|1", plain, &again) == KVO_OK);
    CHECK(a.value == again.value);
    CHECK(a.value != b.value);
    CHECK(a.value != c.value);
    CHECK(table.open("base|lora:x|1", scrub, &again) == KVO_E_ARGUMENT);
    CHECK(table.open("", plain, &again) == KVO_OK);
    CHECK(again.value == 0);
    ns_id id{};
    CHECK(table.find(a, &id) == KVO_OK);
    CHECK(table.name(id) == "base|lora:x|1");
    CHECK(table.find({a.value + 7}, &id) == KVO_E_HANDLE);
    CHECK(table.find({uint64_t{6} << 52 | (a.value & ~(uint64_t{0xFFF} << 52))}, &id) ==
          KVO_E_HANDLE);
    CHECK(table.open(std::string(256, 'n'), plain, &again) == KVO_E_ARGUMENT);
    CHECK(table.open(std::string_view("nul\0inside", 10), plain, &a) == KVO_OK);
    CHECK(table.open("nul", plain, &b) == KVO_OK);
    CHECK(a.value != b.value);
    int opened = 0;
    status s = KVO_OK;
    while (s == KVO_OK) s = table.open("n" + std::to_string(++opened), plain, &a);
    CHECK(s == KVO_E_BUDGET);
    CHECK_THAT(error_text(), contains("room for"));
    CHECK(table.open("n1", plain, &b) == KVO_OK);  // the open ones are still found
}

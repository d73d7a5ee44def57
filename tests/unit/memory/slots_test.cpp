#include "memory/slots.hpp"

#include <random>
#include <set>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;

TEST_CASE("slots come in runs: the one after the last, while it is free") {
    slot_map map(300);
    map.set_usable(300);
    slot_id last = kNoSlot;
    for (uint32_t i = 0; i < 300; ++i) {
        last = map.take(last);
        CHECK(raw(last) == i);
    }
    CHECK(map.take(last) == kNoSlot);
}

TEST_CASE("a slot below the usable end comes back after shrinking and growing") {
    slot_map map(100);
    map.set_usable(100);
    std::vector<slot_id> all;
    for (int i = 0; i < 100; ++i) all.push_back(map.take(all.empty() ? kNoSlot : all.back()));
    map.set_usable(40);
    CHECK(map.n_used_at_or_above(40) == 60);
    for (slot_id s : all) map.give(s);
    CHECK(map.n_free() == 40);
    CHECK(map.n_used_at_or_above(0) == 0);
    map.set_usable(100);
    CHECK(map.n_free() == 100);
}

TEST_CASE("after churn, slots taken in a row lie in longer runs than first-free would give") {
    std::mt19937_64 random(test::seed());
    constexpr uint32_t n = 4096;
    slot_map map(n);
    map.set_usable(n);
    std::vector<slot_id> used;
    for (uint32_t i = 0; i < n; ++i) used.push_back(map.take(used.empty() ? kNoSlot : used.back()));
    std::shuffle(used.begin(), used.end(), random);
    for (uint32_t i = 0; i < n / 2; ++i) {
        map.give(used.back());
        used.pop_back();
    }
    // First-free order over a half-full random map gives runs of about two.
    uint32_t in_a_row = 0;
    slot_id last = kNoSlot;
    for (int i = 0; i < 64; ++i) {
        const slot_id s = map.take(last);
        if (last != kNoSlot && raw(s) == raw(last) + 1) ++in_a_row;
        last = s;
    }
    CHECK(in_a_row > 44);  // runs of more than three
}

TEST_CASE("the map agrees with a plain set over random operations") {
    for (uint64_t s = 0; s < 30; ++s) {
        std::mt19937_64 random(test::seed() * 31 + s);
        INFO("seed " << test::seed() * 31 + s);
        const auto most = static_cast<uint32_t>(1 + random() % 9000);
        slot_map map(most);
        std::set<uint32_t> free;
        std::vector<uint32_t> used;
        uint32_t usable = 0;
        for (int i = 0; i < 3000; ++i) {
            const uint64_t what = random() % 20;
            if (what == 0) {
                const auto n = static_cast<uint32_t>(random() % (most + 1));
                map.set_usable(n);
                for (uint32_t k = usable; k < n; ++k) {
                    if (std::find(used.begin(), used.end(), k) == used.end()) free.insert(k);
                }
                free.erase(free.lower_bound(n), free.end());
                usable = n;
            } else if (what < 12) {
                const slot_id near = used.empty() ? kNoSlot : slot_id{used[random() % used.size()]};
                const slot_id got = map.take(near);
                REQUIRE((got == kNoSlot) == free.empty());
                if (got != kNoSlot) {
                    REQUIRE(free.erase(raw(got)) == 1);
                    used.push_back(raw(got));
                }
            } else if (!used.empty()) {
                std::swap(used[random() % used.size()], used.back());
                map.give(slot_id{used.back()});
                if (used.back() < usable) free.insert(used.back());
                used.pop_back();
            }
            REQUIRE(map.n_free() == free.size());
        }
    }
}

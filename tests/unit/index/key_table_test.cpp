#include "index/key_table.hpp"

#include <map>
#include <random>

#include "index/lane_mask.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

TEST_CASE("a mask tells which of eight numbers equal the wanted one") {
    alignas(16) uint32_t lanes[8] = {};
    for (uint32_t wanted = 0; wanted < 256; ++wanted) {
        for (uint32_t i = 0; i < 8; ++i) lanes[i] = (wanted >> i & 1) != 0 ? 0x80000001u : i;
        CHECK(lanes_equal(lanes, 0x80000001u) == wanted);
    }
}

namespace {

// Homes come from the upper bits of a tag. With few of them, buckets overflow over many others and
// over the end of the table.
uint64_t crowded_digest(std::mt19937_64& random, uint64_t n_homes) {
    const uint64_t home = random() % n_homes;
    const uint64_t upper =
        home * 2 < n_homes ? home : 0xFFFFFFFFu - home;  // both ends of the table
    return upper << 32 | random() % 4;
}

void compare_with_map(uint32_t room, uint64_t n_homes, std::mt19937_64& random) {
    key_table table(room);
    std::map<uint32_t, uint64_t> digest_of;  // by entry
    for (int i = 0; i < 2000; ++i) {
        const auto entry = static_cast<uint32_t>(random() % room);
        const auto it = digest_of.find(entry);
        if (it == digest_of.end()) {
            const uint64_t digest = crowded_digest(random, n_homes);
            table.insert(digest, entry);
            digest_of[entry] = digest;
        } else {
            table.erase(it->second, entry);
            digest_of.erase(it);
        }
        for (const auto& [e, digest] : digest_of) {
            REQUIRE(table.find(digest, [e = e](uint32_t other) { return other == e; }) == e);
            REQUIRE(table.guess(digest) != key_table::kEmpty);
        }
        REQUIRE(table.find(random() | 1u << 31, [](uint32_t) { return false; }) ==
                key_table::kEmpty);
    }
}

}  // namespace

TEST_CASE("the table finds exactly what is in it, with overflowing buckets and over its end") {
    for (uint64_t s = 0; s < 24; ++s) {
        std::mt19937_64 random(seed() * 100 + s);
        const auto room = static_cast<uint32_t>(1 + random() % 60);
        const uint64_t n_homes = 1 + random() % 16;
        INFO("seed " << seed() * 100 + s << " room " << room << " homes " << n_homes);
        compare_with_map(room, n_homes, random);
    }
}

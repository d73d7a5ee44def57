// Registering groups: what is refused, with which numbers, and that sound layouts are accepted.
#include <random>

#include "cache/groups.hpp"
#include "cache/layout.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;
using kvo::test::contains;

namespace {

// Addresses are numbers here: nothing is dereferenced.
void* at(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

kvo_group_config_t group_of(const kvo_part_t* parts, uint32_t n_parts, uint32_t n_blocks) {
    kvo_group_config_t c = KVO_GROUP_CONFIG_INIT;
    c.parts = parts;
    c.n_parts = n_parts;
    c.n_device_blocks = n_blocks;
    return c;
}

status add(group_table& t, const kvo_group_config_t& c, uint32_t device = KVO_DEVICE_HOST) {
    uint32_t index = 0;
    return t.add(c, 16, device, &index);
}

}  // namespace

TEST_CASE("a group that cannot be is refused with the reason") {
    group_table t;
    const kvo_part_t good{at(0x10000), 256, 256, 0, 1, 0};
    kvo_group_config_t c = group_of(&good, 1, 8);

    SECTION("wrong struct size") {
        c.struct_size = 8;
        CHECK(add(t, c) == KVO_E_STRUCT);
    }
    SECTION("wrong version") {
        c.api_version = 99;
        CHECK(add(t, c) == KVO_E_STRUCT);
    }
    SECTION("unknown kind") {
        c.kind = 7;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
    }
    SECTION("no parts") {
        c.n_parts = 0;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        c.n_parts = 1;
        c.parts = nullptr;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        c.n_parts = 1025;
        c.parts = &good;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
    }
    SECTION("no device blocks") {
        c.n_device_blocks = 0;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        c.n_device_blocks = KVO_NO_BLOCK;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
    }
    SECTION("device blocks that do not divide the block") {
        c.device_block_tokens = 5;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        CHECK_THAT(error_text(), contains("5 does not divide block_tokens 16"));
        c.device_block_tokens = 0;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
    }
    SECTION("an opaque group with parts, without bytes, or the other way round") {
        c.kind = KVO_GROUP_OPAQUE;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        c.n_parts = 0;
        c.n_device_blocks = 0;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
        c.opaque_bytes = 100;
        CHECK(add(t, c) == KVO_OK);
        kvo_group_config_t full = group_of(&good, 1, 8);
        full.opaque_bytes = 1;
        CHECK(add(t, full) == KVO_E_ARGUMENT);
    }
    SECTION("a device group without a device") {
        CHECK(add(t, c, KVO_DEVICE_NONE) == KVO_E_UNSUPPORTED);
    }
    SECTION("more than eight groups") {
        for (uint64_t g = 0; g < 8; ++g) {
            const kvo_part_t p{at(0x10000 + g * 0x10000), 256, 256, 0, 1, 0};
            CHECK(add(t, group_of(&p, 1, 8)) == KVO_OK);
        }
        CHECK(add(t, c) == KVO_E_RANGE);
    }
    SECTION("reserved fields") {
        c.reserved = 1;
        CHECK(add(t, c) == KVO_E_ARGUMENT);
    }
}

TEST_CASE("a part that cannot be is refused with its numbers") {
    group_table t;
    const auto refused = [&t](kvo_part_t p, uint32_t n, status why, const std::string& text) {
        CHECK(add(t, group_of(&p, 1, n)) == why);
        CHECK_THAT(error_text(), contains(text));
        CHECK(t.size() == 0);
    };
    refused({nullptr, 256, 256, 0, 1, 0}, 8, KVO_E_ARGUMENT, "NULL");
    refused({at(0x1000), 256, 0, 0, 1, 0}, 8, KVO_E_LAYOUT, "row_bytes 0");
    refused({at(0x1000), 256, 256, 0, 0, 0}, 8, KVO_E_LAYOUT, "rows 0");
    refused({at(0x1000), 128, 256, 0, 1, 0}, 8, KVO_E_LAYOUT,
            "block_stride 128 is smaller than the part");
    refused({at(0x1001), 256, 256, 0, 1, 0}, 8, KVO_E_LAYOUT, "multiples of 4");
    refused({at(0x1000), 258, 256, 0, 1, 0}, 8, KVO_E_LAYOUT, "multiples of 4");
    refused({at(0x1000), 1024, 256, 100, 4, 0}, 8, KVO_E_LAYOUT, "row_pitch 100 is smaller");
    refused({at(0x1000), 512, 256, 256, 4, 0}, 8, KVO_E_LAYOUT, "smaller than the part");
    refused({at(UINT64_MAX - 0xFFF), 4096, 4096, 0, 1, 0}, 8, KVO_E_LAYOUT, "address range");
    refused({at(0x1000), uint64_t{1} << 62, 256, 0, 1, 0}, 8, KVO_E_LAYOUT, "address range");
    refused({at(0x1000), uint64_t{1} << 33, 4, 4, 1u << 31, 0}, 1, KVO_E_LAYOUT, "rows");
    refused({at(0x1000), 256, 256, 0, 1, 9}, 8, KVO_E_ARGUMENT, "reserved");
}

TEST_CASE("sound layouts of every kind are accepted") {
    group_table t;
    const std::vector<kvo_part_t> interleaved{{at(0x10000), 512, 256, 0, 1, 0},
                                              {at(0x10100), 512, 256, 0, 1, 0}};
    CHECK(add(t, group_of(interleaved.data(), 2, 100)) == KVO_OK);
    CHECK(t[0].slot_bytes == 512);
    // Rows outside: all blocks of row 0, then all of row 1.
    const kvo_part_t by_row{at(0x100000), 64, 64, 64 * 100, 4, 0};
    CHECK(add(t, group_of(&by_row, 1, 100)) == KVO_OK);
    // Rows inside each block.
    const kvo_part_t by_block{at(0x200000), 1024, 64, 128, 8, 0};
    CHECK(add(t, group_of(&by_block, 1, 100)) == KVO_OK);
    // Two groups share one allocation at different offsets, no period in common but the stride.
    const kvo_part_t left{at(0x300000 + 4608), 4096, 1024, 0, 1, 0};
    const kvo_part_t right{at(0x300000 + 6656), 4096, 1024, 0, 1, 0};
    CHECK(add(t, group_of(&left, 1, 16)) == KVO_OK);
    CHECK(add(t, group_of(&right, 1, 16)) == KVO_OK);
    const kvo_part_t bytes{at(0x400001), 3, 3, 0, 1, 0};
    CHECK(add(t, group_of(&bytes, 1, 16)) == KVO_OK);
    CHECK(t[5].slot_stride == 64);
}

TEST_CASE("parts that share bytes are refused, within a group and between groups") {
    group_table t;
    const std::vector<kvo_part_t> twice{{at(0x10000), 512, 256, 0, 1, 0},
                                        {at(0x10080), 512, 256, 0, 1, 0}};
    CHECK(add(t, group_of(twice.data(), 2, 8)) == KVO_E_LAYOUT);
    CHECK_THAT(error_text(), contains("parts overlap: group 0 part 0 [0x10000, 0x10f00)"));
    const kvo_part_t first{at(0x10000), 256, 256, 0, 1, 0};
    REQUIRE(add(t, group_of(&first, 1, 8)) == KVO_OK);
    const kvo_part_t inside{at(0x10000 + 7 * 256 + 128), 256, 256, 0, 1, 0};
    CHECK(add(t, group_of(&inside, 1, 8)) == KVO_E_LAYOUT);
    const kvo_part_t behind{at(0x10000 + 8 * 256), 256, 256, 0, 1, 0};
    CHECK(add(t, group_of(&behind, 1, 8)) == KVO_OK);
}

TEST_CASE("the overlap check agrees with marking every byte") {
    std::mt19937_64 random(kvo::test::seed());
    int met = 0, apart = 0;
    for (int round = 0; round < 3000; ++round) {
        placed_part p[2];
        std::vector<int> owner(4096, 0);
        bool overlap = false, sound = true;
        for (int k = 0; k < 2; ++k) {
            const uint64_t row_bytes = 4 * (1 + random() % 4), rows = 1 + random() % 3;
            const uint64_t pitch = row_bytes + 4 * (random() % 8);
            uint64_t stride = 4 * (1 + random() % 24);
            p[k] = {{at(0x1000 + 4 * (random() % 64)), stride, row_bytes, pitch,
                     static_cast<uint32_t>(rows), 0},
                    static_cast<uint32_t>(1 + random() % 6),
                    0,
                    static_cast<uint32_t>(k)};
            sound = sound && check_part(p[k]) == KVO_OK;
            if (!sound) break;
            for (uint64_t d = 0; d < p[k].n_blocks; ++d) {
                for (uint64_t r = 0; r < rows; ++r) {
                    const uint64_t begin = reinterpret_cast<uint64_t>(p[k].part.base) - 0x1000 +
                                           d * stride + (rows > 1 ? r * pitch : 0);
                    for (uint64_t b = begin; b < begin + row_bytes; ++b) {
                        overlap = overlap || (owner[b] != 0 && owner[b] != k + 1);
                        sound = sound && owner[b] != k + 1;
                        owner[b] = k + 1;
                    }
                }
            }
            REQUIRE(sound);  // a part that passes its own check never meets itself
        }
        if (!sound) continue;
        CHECK((check_apart(p[0], p[1]) == KVO_E_LAYOUT) == overlap);
        CHECK((check_apart(p[1], p[0]) == KVO_E_LAYOUT) == overlap);
        ++(overlap ? met : apart);
    }
    CHECK(met > 100);
    CHECK(apart > 100);
}

TEST_CASE("block lists are checked against the group before anything happens") {
    group_table t;
    const kvo_part_t p{at(0x10000), 256, 256, 0, 1, 0};
    kvo_group_config_t c = group_of(&p, 1, 8);
    c.device_block_tokens = 8;
    REQUIRE(add(t, c) == KVO_OK);
    kvo_group_config_t opaque = KVO_GROUP_CONFIG_INIT;
    opaque.kind = KVO_GROUP_OPAQUE;
    opaque.opaque_bytes = 8;
    REQUIRE(add(t, opaque) == KVO_OK);
    const std::vector<uint32_t> ids{0, 1, KVO_NO_BLOCK, 7};
    uint32_t mask = 0;
    const auto check = [&](std::vector<kvo_blocks_t> lists, uint64_t n) {
        return t.check_lists(lists, n, true, &mask);
    };
    CHECK(check({{0, 4, ids.data()}}, 2) == KVO_OK);
    CHECK(mask == 1);
    CHECK(check({{0, 4, ids.data()}}, 3) == KVO_E_ARGUMENT);
    CHECK_THAT(error_text(), contains("need 6"));
    CHECK(check({{0, 4, nullptr}}, 2) == KVO_E_ARGUMENT);
    CHECK(check({{2, 4, ids.data()}}, 2) == KVO_E_RANGE);
    CHECK(check({{1, 4, ids.data()}}, 2) == KVO_E_ARGUMENT);
    CHECK(check({{0, 4, ids.data()}, {0, 4, ids.data()}}, 2) == KVO_E_ARGUMENT);
    const std::vector<uint32_t> outside{0, 8};
    CHECK(check({{0, 2, outside.data()}}, 1) == KVO_E_RANGE);
    CHECK_THAT(error_text(), contains("ids[1] is 8"));
    CHECK(check({}, 2) == KVO_OK);
}

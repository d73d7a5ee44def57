// What a budget buys, and what is said when it buys nothing.
#include "cache/budget.hpp"
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::cache_setup;
using kvo::test::contains;

namespace {

budget_inputs inputs_of(uint64_t budget, uint64_t block) {
    budget_inputs in;
    in.config = KVO_CONFIG_INIT;
    in.config.budget_bytes = in.config.max_bytes = budget;
    in.config.max_ops = in.config.max_tickets = 64;
    in.config.event_ring = 0;
    in.slot_strides = {block};
    in.transfer_bytes = 100000;
    return in;
}

}  // namespace

TEST_CASE("a budget is used up to less than one block") {
    for (const uint64_t budget : std::vector<uint64_t>{1'000'000, 64 << 20, uint64_t{100} << 30}) {
        for (const uint64_t block : std::vector<uint64_t>{64, 4096, 300'000}) {
            budget_plan plan;
            const budget_inputs in = inputs_of(budget, block);
            REQUIRE(make_plan(in, &plan) == KVO_OK);
            const uint64_t used = plan.metadata_bytes + slots_bytes(plan.slots, plan.blocks);
            CHECK(used <= budget);
            const uint64_t next =
                metadata_bytes(in, plan.blocks + 1) + slots_bytes(plan.slots, plan.blocks + 1);
            CHECK(next > budget);
            CHECK(plan.blocks == plan.max_blocks);
            CHECK(uint64_t{plan.slots.per_chunk} * block <= std::max<uint64_t>(block, 64 << 20));
        }
    }
}

TEST_CASE("metadata for the largest size is paid from the start") {
    budget_inputs in = inputs_of(64 << 20, 4096);
    in.config.max_bytes = 256 << 20;
    budget_plan plan;
    REQUIRE(make_plan(in, &plan) == KVO_OK);
    CHECK(plan.max_blocks > plan.blocks * 3);
    CHECK(plan.metadata_bytes == metadata_bytes(in, plan.max_blocks));
    uint32_t blocks = 0;
    CHECK(replan(plan, in.config.max_bytes, &blocks) == KVO_OK);
    CHECK(blocks == plan.max_blocks);
    CHECK(replan(plan, plan.metadata_bytes, &blocks) == KVO_E_BUDGET);
    CHECK_THAT(error_text(), contains("give at least"));
}

TEST_CASE("a budget too small for one block says what one block needs") {
    budget_plan plan;
    CHECK(make_plan(inputs_of(200'000, 1 << 20), &plan) == KVO_E_BUDGET);
    CHECK_THAT(error_text(), contains("1048576 bytes of slots"));
    CHECK_THAT(error_text(), contains("give at least"));
    CHECK_THAT(error_text(), contains("lower max_ops"));
}

TEST_CASE("a budget larger than the machine is refused at create with both numbers") {
    kvo_config_t c = KVO_CONFIG_INIT;
    c.block_tokens = 16;
    c.budget_bytes = uint64_t{1} << 50;
    std::unique_ptr<cache> out;
    CHECK(cache::create(c, nullptr, {}, &out) == KVO_E_BUDGET);
    CHECK(out == nullptr);
    CHECK_THAT(error_text(), contains("1125899906842624"));
    CHECK_THAT(error_text(), contains("available"));
    c.budget_bytes = 64 << 20;
    c.host_share = 65536;  // a fair share of this machine is less than that
    CHECK(cache::create(c, nullptr, {}, &out) == KVO_E_BUDGET);
    CHECK_THAT(error_text(), contains("shared by 65536"));
}

TEST_CASE("metadata beside ghosts stays within 128 bytes a block") {
    for (const kvo_policy_t policy : std::vector<kvo_policy_t>{KVO_POLICY_LRU, KVO_POLICY_ARC}) {
        budget_inputs in = inputs_of(uint64_t{1} << 40, 4096);
        in.config.policy = policy;
        constexpr uint32_t kBlocks = 1'000'000;
        // Ghosts and the records whose number does not depend on the blocks are counted apart.
        const uint64_t bytes = metadata_bytes(in, 2 * kBlocks) - metadata_bytes(in, kBlocks);
        const uint64_t ghosts = ghost_bytes(policy, 2 * kBlocks) - ghost_bytes(policy, kBlocks);
        const uint64_t per_block = (bytes - ghosts) / kBlocks;
        INFO("policy " << policy << ": " << per_block << " bytes a block");
        CHECK(per_block <= 128);
    }
}

TEST_CASE("capacity tells exactly the blocks that a budget was made for") {
    for (const uint32_t blocks : std::vector<uint32_t>{1, 4, 63, 64, 65, 1000}) {
        cache_fixture f({.blocks = blocks, .part_bytes = {1024}});
        CHECK(f.capacity().blocks_now == blocks);
        CHECK(f.capacity().blocks_target == blocks);
        CHECK(f.capacity().block_bytes == 1024);
        const kvo_stats_t s = f.stats();
        CHECK(s.pool_touched_bytes + s.metadata_bytes <= s.budget_bytes);
        CHECK(s.slots_free == blocks);
    }
}

TEST_CASE(
    "a start that fails for lack of budget can be told from one that succeeds, and leaks nothing") {
    kvo_config_t c = KVO_CONFIG_INIT;
    c.block_tokens = 16;
    c.budget_bytes = 20000;
    std::unique_ptr<cache> out;
    REQUIRE(cache::create(c, nullptr, {}, &out) == KVO_OK);
    CHECK(out->start(0, 0) == KVO_E_STATE);
    std::vector<uint8_t> memory(8 * 4096);
    const kvo_part_t part{memory.data(), 4096, 4096, 0, 1, 0};
    kvo_group_config_t g = KVO_GROUP_CONFIG_INIT;
    g.parts = &part;
    g.n_parts = 1;
    g.n_device_blocks = 8;
    uint32_t index = 0;
    REQUIRE(out->register_group(g, &index) == KVO_OK);
    CHECK(out->start(0, 0) == KVO_E_BUDGET);
    kvo_capacity_t capacity = KVO_CAPACITY_INIT;
    CHECK(out->capacity(&capacity) == KVO_E_STATE);
    CHECK(out->start(0, 0) == KVO_E_BUDGET);  // as often as one likes
}

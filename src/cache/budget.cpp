#include "cache/budget.hpp"

#include <algorithm>

#include "base/math.hpp"
#include "cache/event_ring.hpp"
#include "cache/namespaces.hpp"
#include "cache/records.hpp"
#include "memory/slots.hpp"

namespace kvo {

namespace {

constexpr uint32_t kMostBlocks = (1u << 31) - 2;  // the top bit of a slot number is the cache's own
constexpr uint64_t kSmallestChunk = 256 * 1024;
constexpr uint64_t kLargestChunk = uint64_t{64} << 20;
constexpr uint64_t kPage = 4096;
constexpr uint32_t kWholePages = 64;  // so many slots are whole pages, whatever their size

uint64_t fixed_bytes(const budget_inputs& in) {
    const kvo_config_t& c = in.config;
    return in.transfer_bytes + in.extra_bytes + records_bytes(c) +
           event_ring::bytes_for(c.event_ring) + namespace_table::bytes_for(c.budget_bytes);
}

// Largest n <= limit with cost(n) <= bytes, cost rising; 0 when none.
template <typename Cost>
uint32_t largest(uint64_t bytes, uint32_t limit, Cost cost) {
    uint32_t low = 0, high = limit;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (cost(middle) <= bytes) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

uint32_t most_blocks(uint64_t bytes, uint64_t block_bytes) {
    return static_cast<uint32_t>(std::min<uint64_t>(bytes / block_bytes, kMostBlocks));
}

}  // namespace

transfer_config transfer_config_for(const kvo_config_t& config, uint32_t n_groups) {
    transfer_config t;
    t.max_ops = config.max_ops;
    t.max_inflight_blocks = config.max_inflight_blocks;
    t.window_bytes = config.window_bytes;
    t.store_bytes_per_s = config.store_bytes_per_s;
    t.n_groups = n_groups;
    return t;
}

budget_inputs budget_inputs_for(const kvo_config_t& config, const group_table& groups,
                                uint64_t extra_bytes_per_block, uint64_t extra_bytes) {
    budget_inputs in;
    in.config = config;
    for (uint32_t g = 0; g < groups.size(); ++g) in.slot_strides.push_back(groups[g].slot_stride);
    in.transfer_bytes =
        transfer_engine::bytes_for(transfer_config_for(config, groups.size()), groups.layouts());
    in.extra_bytes_per_block = extra_bytes_per_block;
    in.extra_bytes = extra_bytes;
    return in;
}

uint64_t run_pages_for(const kvo_config_t& config, uint32_t max_blocks) {
    return run_room::pages_for(max_blocks, uint64_t{config.max_tickets} + 64);
}

uint64_t slot_layout::block_bytes() const {
    uint64_t sum = 0;
    for (const uint64_t stride : strides) sum += stride;
    return sum;
}

uint64_t slot_layout::touched_bytes(uint64_t blocks) const {
    const uint64_t chunks = blocks / per_chunk, rest = blocks % per_chunk;
    uint64_t sum = 0;
    for (const uint64_t stride : strides) {
        sum += chunks * align_up(per_chunk * stride, kPage) + align_up(rest * stride, kPage);
    }
    return sum;
}

slot_layout layout_for(const budget_inputs& in) {
    slot_layout out{in.slot_strides, 1};
    const uint64_t chunk = std::clamp(in.config.max_bytes / 16, kSmallestChunk, kLargestChunk);
    const uint64_t n = std::clamp<uint64_t>(chunk / out.block_bytes(), 1, kMostBlocks);
    out.per_chunk = static_cast<uint32_t>(n > kWholePages ? n / kWholePages * kWholePages : n);
    return out;
}

uint64_t slots_bytes(const slot_layout& layout, uint64_t blocks) {
    const uint64_t slots = layout.touched_bytes(blocks);
    return slots + slots / 100;
}

uint64_t metadata_bytes(const budget_inputs& in, uint32_t max_blocks) {
    const uint32_t n_groups = static_cast<uint32_t>(in.slot_strides.size());
    const index_config index{max_blocks, n_groups, static_cast<kvo_policy_t>(in.config.policy)};
    return fixed_bytes(in) + block_index::bytes_for(index) +
           n_groups * slot_map::bytes_for(max_blocks) +
           run_room::bytes_for(run_pages_for(in.config, max_blocks)) + div_up(max_blocks, 64) * 8 +
           in.extra_bytes_per_block * max_blocks;
}

status make_plan(const budget_inputs& in, budget_plan* out) {
    budget_plan plan;
    plan.slots = layout_for(in);
    plan.block_bytes = plan.slots.block_bytes();
    const uint64_t budget = in.config.budget_bytes;
    plan.max_blocks =
        largest(in.config.max_bytes, most_blocks(in.config.max_bytes, plan.block_bytes),
                [&](uint32_t n) { return metadata_bytes(in, n) + slots_bytes(plan.slots, n); });
    plan.metadata_bytes = metadata_bytes(in, plan.max_blocks);
    const status s = plan.max_blocks > 0 ? replan(plan, budget, &plan.blocks) : KVO_E_BUDGET;
    if (s != KVO_OK) {
        const uint64_t fixed = metadata_bytes(in, std::max(plan.max_blocks, 1u));
        return fail(
            KVO_E_BUDGET,
            "budget_bytes {} does not hold one block: a block needs {} bytes of slots, and index, "
            "records "
            "and tickets need {} (of which transfer records {}, sequence level {}); give at least "
            "{} or "
            "lower max_ops, max_inflight_blocks, max_tickets, max_seq_tokens or max_bytes {}",
            budget, plan.block_bytes, fixed, in.transfer_bytes, in.extra_bytes,
            fixed + slots_bytes(plan.slots, 1), in.config.max_bytes);
    }
    plan.run_pages = run_pages_for(in.config, plan.max_blocks);
    *out = plan;
    return KVO_OK;
}

status replan(const budget_plan& plan, uint64_t budget_bytes, uint32_t* blocks) {
    if (budget_bytes > plan.metadata_bytes) {
        *blocks = largest(budget_bytes - plan.metadata_bytes, plan.max_blocks,
                          [&](uint32_t n) { return slots_bytes(plan.slots, n); });
        if (*blocks > 0) return KVO_OK;
    }
    return fail(
        KVO_E_BUDGET,
        "a budget of {} bytes holds no block: metadata takes {} and a block {}; give at least {}",
        budget_bytes, plan.metadata_bytes, plan.block_bytes,
        plan.metadata_bytes + slots_bytes(plan.slots, 1));
}

status check_machine(uint64_t bytes, uint64_t already, uint32_t host_share, const char* what) {
    const headroom room = read_headroom();
    const uint64_t share = (room.available_bytes + already) / host_share;
    if (bytes <= share) return KVO_OK;
    return fail(KVO_E_BUDGET,
                "{} of {} bytes is more than this process may take: {} bytes are available ({}), "
                "shared by {} "
                "process(es) makes {}; lower the budget or free memory",
                what, bytes, room.available_bytes, room.limited_by, host_share, share);
}

}  // namespace kvo

// How many blocks a budget buys. Everything the cache will ever hold is counted: slots, 1 % of them
// for the kernel's own bookkeeping (page tables, pins), index with its ghosts, slot maps, transfer
// records, tickets, names, events, and what the sequence level keeps. Pure functions, except
// check_machine, which reads files.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "cache/groups.hpp"
#include "index/block_index.hpp"
#include "kvoffload/kvo_cache.h"
#include "memory/headroom.hpp"
#include "transfer/transfer_engine.hpp"

namespace kvo {

struct budget_inputs {
    kvo_config_t config{};
    std::vector<uint64_t> slot_strides;  // per group
    uint64_t transfer_bytes = 0;
    uint64_t extra_bytes_per_block = 0;  // sequence level
    uint64_t extra_bytes = 0;
};

transfer_config transfer_config_for(const kvo_config_t& config, uint32_t n_groups);
budget_inputs budget_inputs_for(const kvo_config_t& config, const group_table& groups,
                                uint64_t extra_bytes_per_block, uint64_t extra_bytes);

// How slots lie in chunks, per group; a chunk's used part is whole pages.
struct slot_layout {
    std::vector<uint64_t> strides;
    uint32_t per_chunk = 1;
    uint64_t block_bytes() const;
    uint64_t touched_bytes(uint64_t blocks) const;
};

struct budget_plan {
    uint32_t max_blocks = 0;  // what max_bytes buys: sizes index, maps and address space
    uint32_t blocks = 0;      // what budget_bytes buys, given metadata for max_blocks
    uint64_t metadata_bytes = 0;
    uint64_t block_bytes = 0;  // slots of one block
    slot_layout slots;
    uint64_t run_pages = 0;  // room for what tickets and reservations list
};

// Memory of everything but slots when at most max_blocks can ever be resident.
uint64_t metadata_bytes(const budget_inputs& in, uint32_t max_blocks);
// Slots of that many blocks and the kernel's share.
uint64_t slots_bytes(const slot_layout& layout, uint64_t blocks);
slot_layout layout_for(const budget_inputs& in);
uint64_t run_pages_for(const kvo_config_t& config, uint32_t max_blocks);

// KVO_E_BUDGET with the numbers when not one block fits.
status make_plan(const budget_inputs& in, budget_plan* out);
// Blocks that another budget would buy; KVO_E_BUDGET when none.
status replan(const budget_plan& plan, uint64_t budget_bytes, uint32_t* blocks);

// Does the machine (its cgroup) have this much left, for host_share processes like this one?
// `already` is what this cache holds of it now.
status check_machine(uint64_t bytes, uint64_t already, uint32_t host_share, const char* what);

}  // namespace kvo

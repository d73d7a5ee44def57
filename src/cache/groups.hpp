// The groups of a cache: their parts, how device blocks make up a host block, what a slot needs,
// and whether the device pool is there. Groups are added before start; afterwards only attach and
// detach change them, under the cache lock.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/status.hpp"
#include "kvoffload/kvo_block.h"
#include "kvoffload/kvo_cache.h"
#include "transfer/transfer_engine.hpp"

namespace kvo {

struct group {
    std::string name;
    kvo_group_kind_t kind = KVO_GROUP_FULL;
    std::vector<kvo_part_t> parts;
    uint32_t n_device_blocks = 0;
    uint32_t ratio = 1;        // device blocks of one host block
    uint64_t slot_bytes = 0;   // what a block fills
    uint64_t slot_stride = 0;  // from one slot to the next
    uint32_t lag_tokens = 0;
    bool attached = true;
    uint32_t ops = 0;  // ops that name it and are not over

    bool on_device() const { return kind == KVO_GROUP_FULL; }
};

class group_table {
public:
    status add(const kvo_group_config_t& config, uint32_t block_tokens, uint32_t device_kind,
               uint32_t* index);
    status attach(uint32_t g, std::span<const kvo_part_t> parts);

    uint32_t size() const { return n_; }
    group& operator[](uint32_t g) { return groups_[g]; }
    const group& operator[](uint32_t g) const { return groups_[g]; }
    uint64_t block_bytes() const;
    std::vector<group_layout> layouts() const;

    // Block lists of one call for n host blocks: known device groups, each once, of the right
    // length, ids in range. exact_length false: any length (fence). *mask gets the groups named.
    status check_lists(std::span<const kvo_blocks_t> lists, uint64_t n_blocks, bool exact_length,
                       uint32_t* mask) const;

private:
    status check_new_parts(uint32_t g, std::span<const kvo_part_t> parts, uint32_t n_blocks) const;

    std::array<group, kMaxGroups> groups_;
    uint32_t n_ = 0;
};

}  // namespace kvo

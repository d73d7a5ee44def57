// From pieces to descriptors: where each row lies on the device and in the slot, neighbours merged. Pure
// arithmetic over layouts; allocates only at construction. Under the cache lock (slot addresses).
#pragma once

#include <span>
#include <vector>

#include "device/device.hpp"
#include "transfer/records.hpp"

namespace kvo {

class planner {
public:
    explicit planner(std::span<const group_layout> groups);

    // Descriptors of one piece before merging, and its bytes.
    uint32_t n_rows(uint32_t group) const { return groups_[group].n_rows; }
    uint64_t piece_bytes(uint32_t group) const { return groups_[group].piece_bytes; }
    uint32_t most_rows() const { return most_rows_; }
    void set_parts(uint32_t group, std::span<const kvo_part_t> parts);

    // Appends the piece's descriptors to out[*n], merging with the last one where both sides continue, and
    // notes in the piece which descriptors are its own. Returns how many rows were merged away.
    uint32_t append(copy_direction direction, piece_record& piece, uint8_t* slot, copy_piece* out,
                    uint32_t* n) const;

private:
    struct group_plan {
        std::vector<kvo_part_t> parts;
        std::vector<uint64_t> part_offset;  // of each part in the slot
        uint32_t n_rows = 0;
        uint64_t piece_bytes = 0;
        uint32_t ratio = 1;
    };
    std::vector<group_plan> groups_;
    uint32_t most_rows_ = 1;
};

}  // namespace kvo

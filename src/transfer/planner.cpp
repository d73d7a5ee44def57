#include "transfer/planner.hpp"

#include <algorithm>

namespace kvo {

planner::planner(std::span<const group_layout> groups) : groups_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
        group_plan& plan = groups_[g];
        plan.ratio = groups[g].ratio;
        uint64_t offset = 0;
        for (const kvo_part_t& part : groups[g].parts) {
            plan.parts.push_back(part);
            plan.part_offset.push_back(offset);
            offset += plan.ratio * part.rows * part.row_bytes;
            plan.n_rows += part.rows;
            plan.piece_bytes += part.rows * part.row_bytes;
        }
        most_rows_ = std::max(most_rows_, plan.n_rows);
    }
}

void planner::set_parts(uint32_t group, std::span<const kvo_part_t> parts) {
    std::copy(parts.begin(), parts.end(), groups_[group].parts.begin());
}

uint32_t planner::append(copy_direction direction, piece_record& piece, uint8_t* slot, copy_piece* out,
                         uint32_t* n) const {
    const group_plan& plan = groups_[piece.group];
    uint32_t n_merged = 0;
    piece.first_call_piece = UINT32_MAX;
    for (size_t p = 0; p < plan.parts.size(); ++p) {
        const kvo_part_t& part = plan.parts[p];
        auto* device = static_cast<uint8_t*>(part.base) + piece.device_block * part.block_stride;
        uint8_t* host = slot + plan.part_offset[p] + piece.sub * part.rows * part.row_bytes;
        for (uint32_t r = 0; r < part.rows; ++r) {
            uint8_t* dst = direction == copy_direction::load ? device : host;
            const uint8_t* src = direction == copy_direction::load ? host : device;
            copy_piece* last = *n > 0 ? &out[*n - 1] : nullptr;
            if (last != nullptr && static_cast<uint8_t*>(last->dst) + last->bytes == dst &&
                static_cast<const uint8_t*>(last->src) + last->bytes == src) {
                last->bytes += part.row_bytes;
                ++n_merged;
            } else {
                out[(*n)++] = {dst, src, part.row_bytes};
            }
            piece.first_call_piece = std::min(piece.first_call_piece, *n - 1);
            device += part.row_pitch;
            host += part.row_bytes;
        }
    }
    piece.last_call_piece = *n - 1;
    return n_merged;
}

}  // namespace kvo

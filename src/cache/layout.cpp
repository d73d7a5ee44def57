#include "cache/layout.hpp"

#include <algorithm>
#include <numeric>

#include "base/math.hpp"

namespace kvo {

namespace {

// Most places compared one by one when two parts are interleaved in a way that no period explains.
constexpr uint64_t kMostSteps = uint64_t{1} << 26;

uint64_t address(const kvo_part_t& p) { return reinterpret_cast<uint64_t>(p.base); }
uint64_t pitch_of(const kvo_part_t& p) { return p.rows > 1 ? p.row_pitch : 0; }
uint64_t rows_bytes(const kvo_part_t& p) { return (p.rows - 1) * pitch_of(p) + p.row_bytes; }
uint64_t end_of(const placed_part& p) {
    return address(p.part) + uint64_t{p.n_blocks - 1} * p.part.block_stride + rows_bytes(p.part);
}

bool end_fits(const placed_part& p) {
    uint64_t blocks = 0, rows = 0, sum = 0;
    return checked_mul(p.n_blocks - 1, p.part.block_stride, &blocks) &&
           checked_mul(p.part.rows - 1, pitch_of(p.part), &rows) &&
           checked_add(blocks, rows, &sum) && checked_add(sum, p.part.row_bytes, &sum) &&
           checked_add(sum, address(p.part), &sum);
}

// Do the two meet when all their steps are multiples of `period`? A "no" is certain.
bool may_meet(const placed_part& a, const placed_part& b, uint64_t period) {
    if (a.part.row_bytes + b.part.row_bytes > period) return true;
    const uint64_t at_a = address(a.part) % period, at_b = address(b.part) % period;
    const uint64_t a_to_b = (at_b + period - at_a) % period;
    return a_to_b < a.part.row_bytes || period - a_to_b < b.part.row_bytes;
}

// Does some block of this part have a byte in [begin, end)?
bool covers(const placed_part& p, uint64_t begin, uint64_t end) {
    for (uint32_t r = 0; r < p.part.rows; ++r) {
        const uint64_t base = address(p.part) + r * pitch_of(p.part);
        if (end <= base) continue;
        const uint64_t stride = std::max<uint64_t>(p.part.block_stride, 1);
        // The last block that starts before `end`.
        const uint64_t block = std::min<uint64_t>((end - 1 - base) / stride, p.n_blocks - 1);
        if (base + block * p.part.block_stride + p.part.row_bytes > begin) return true;
    }
    return false;
}

status overlap(const placed_part& a, const placed_part& b) {
    return fail(
        KVO_E_LAYOUT,
        "parts overlap: group {} part {} [{:#x}, {:#x}) stride {} row {} x {} and group {} part {} "
        "[{:#x}, {:#x}) stride {} row {} x {}",
        a.group, a.index, address(a.part), end_of(a), a.part.block_stride, a.part.rows,
        a.part.row_bytes, b.group, b.index, address(b.part), end_of(b), b.part.block_stride,
        b.part.rows, b.part.row_bytes);
}

}  // namespace

status check_part(const placed_part& p) {
    const kvo_part_t& part = p.part;
    if (part.base == nullptr) return fail(KVO_E_ARGUMENT, "part {}: base is NULL", p.index);
    if (part.reserved != 0) return fail(KVO_E_ARGUMENT, "part {}: reserved must be 0", p.index);
    if (part.row_bytes == 0 || part.rows == 0) {
        return fail(KVO_E_LAYOUT, "part {}: rows {} x row_bytes {}; both must be 1 or more",
                    p.index, part.rows, part.row_bytes);
    }
    // Elements of up to four bytes lie at multiples of their size in any real layout.
    const uint64_t align = std::min<uint64_t>(part.row_bytes & (~part.row_bytes + 1), 4);
    if (address(part) % align != 0 || part.block_stride % align != 0 ||
        pitch_of(part) % align != 0) {
        return fail(KVO_E_LAYOUT,
                    "part {}: base {:#x}, block_stride {} and row_pitch {} must be multiples of {} "
                    "for rows of {} "
                    "bytes",
                    p.index, address(part), part.block_stride, pitch_of(part), align,
                    part.row_bytes);
    }
    if (part.rows > 1 && part.row_pitch < part.row_bytes) {
        return fail(KVO_E_LAYOUT, "part {}: row_pitch {} is smaller than row_bytes {}", p.index,
                    part.row_pitch, part.row_bytes);
    }
    if (!end_fits(p)) {
        return fail(KVO_E_LAYOUT,
                    "part {}: {} blocks of stride {} from {:#x} end outside the address range",
                    p.index, p.n_blocks, part.block_stride, address(part));
    }
    if (p.n_blocks > 1 && part.block_stride < rows_bytes(part)) {
        // Rows outside, blocks inside (one run of all blocks for each row) is the other sound
        // nesting.
        const uint64_t run = uint64_t{p.n_blocks - 1} * part.block_stride + part.row_bytes;
        if (part.rows == 1 || part.block_stride < part.row_bytes || part.row_pitch < run) {
            return fail(KVO_E_LAYOUT,
                        "part {}: block_stride {} is smaller than the part ({} rows of {} bytes, "
                        "pitch {}: {} "
                        "bytes)",
                        p.index, part.block_stride, part.rows, part.row_bytes, pitch_of(part),
                        rows_bytes(part));
        }
    }
    return KVO_OK;
}

status check_apart(const placed_part& a, const placed_part& b) {
    if (end_of(a) <= address(b.part) || end_of(b) <= address(a.part)) return KVO_OK;
    const uint64_t period = std::gcd(std::gcd(a.part.block_stride, pitch_of(a.part)),
                                     std::gcd(b.part.block_stride, pitch_of(b.part)));
    if (period > 0 && !may_meet(a, b, period)) return KVO_OK;
    const bool a_is_smaller =
        uint64_t{a.n_blocks} * a.part.rows < uint64_t{b.n_blocks} * b.part.rows;
    const placed_part& few = a_is_smaller ? a : b;
    const placed_part& many = a_is_smaller ? b : a;
    uint64_t steps = 0;
    if (!checked_mul(uint64_t{few.n_blocks} * few.part.rows, many.part.rows, &steps) ||
        steps > kMostSteps) {
        return overlap(a, b);  // can't be told apart: better a refusal than a wrong byte
    }
    for (uint32_t r = 0; r < few.part.rows; ++r) {
        for (uint64_t d = 0; d < few.n_blocks; ++d) {
            const uint64_t begin =
                address(few.part) + d * few.part.block_stride + r * pitch_of(few.part);
            if (covers(many, begin, begin + few.part.row_bytes)) return overlap(a, b);
        }
    }
    return KVO_OK;
}

}  // namespace kvo

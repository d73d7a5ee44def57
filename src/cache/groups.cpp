#include "cache/groups.hpp"

#include <cstring>

#include "base/math.hpp"
#include "cache/config.hpp"
#include "cache/layout.hpp"

namespace kvo {

namespace {

constexpr uint32_t kMaxParts = 1024;
constexpr uint64_t kSlotAlign = 64;  // a cache line, for non-temporal copies
constexpr uint64_t kMaxSlotBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxRows = uint64_t{1} << 16;  // descriptors that one device block may need
constexpr size_t kMaxNameBytes = 63;

status check_kind(const kvo_group_config_t& c, uint32_t device_kind) {
    if (c.kind == KVO_GROUP_OPAQUE) {
        if (c.n_parts != 0 || c.n_device_blocks != 0) {
            return fail(KVO_E_ARGUMENT,
                        "an opaque group has no device parts: n_parts {} n_device_blocks {}",
                        c.n_parts, c.n_device_blocks);
        }
        if (c.opaque_bytes == 0 || c.opaque_bytes > kMaxSlotBytes) {
            return fail(KVO_E_ARGUMENT, "opaque_bytes is {}; it must be 1..{}", c.opaque_bytes,
                        kMaxSlotBytes);
        }
        return KVO_OK;
    }
    if (c.kind != KVO_GROUP_FULL) {
        return fail(KVO_E_ARGUMENT, "group kind is {}; known are 0 (full) and 1 (opaque)", c.kind);
    }
    if (device_kind == KVO_DEVICE_NONE) {
        return fail(KVO_E_UNSUPPORTED, "a cache without a device takes opaque groups only");
    }
    if (c.n_parts == 0 || c.n_parts > kMaxParts || c.parts == nullptr) {
        return fail(KVO_E_ARGUMENT, "n_parts is {} (1..{}) and parts is {}", c.n_parts, kMaxParts,
                    c.parts == nullptr ? "NULL" : "given");
    }
    if (c.n_device_blocks == 0 || c.n_device_blocks == KVO_NO_BLOCK) {
        return fail(KVO_E_ARGUMENT, "n_device_blocks is {}; it must be 1..{}", c.n_device_blocks,
                    KVO_NO_BLOCK - 1);
    }
    if (c.opaque_bytes != 0) {
        return fail(KVO_E_ARGUMENT, "opaque_bytes is {} in a group with device parts; it must be 0",
                    c.opaque_bytes);
    }
    return KVO_OK;
}

status slot_size(std::span<const kvo_part_t> parts, uint32_t ratio, uint64_t* out) {
    uint64_t sum = 0, rows = 0;
    for (const kvo_part_t& p : parts) {
        uint64_t bytes = 0;
        rows += p.rows;
        if (rows > kMaxRows) {
            return fail(KVO_E_LAYOUT, "the parts of this group have more than {} rows a device block",
                        kMaxRows);
        }
        if (!checked_mul(uint64_t{p.rows} * ratio, p.row_bytes, &bytes) ||
            !checked_add(sum, bytes, &sum) || sum > kMaxSlotBytes) {
            return fail(KVO_E_LAYOUT, "one block of this group is larger than {} bytes",
                        kMaxSlotBytes);
        }
    }
    *out = sum;
    return KVO_OK;
}

}  // namespace

status group_table::add(const kvo_group_config_t& c, uint32_t block_tokens, uint32_t device_kind,
                        uint32_t* index) {
    status s = check_struct("kvo_group_config_t", c.struct_size, c.api_version, sizeof(c));
    if (s != KVO_OK) return s;
    if (n_ == kMaxGroups) return fail(KVO_E_RANGE, "a cache has at most {} groups", kMaxGroups);
    if (c.reserved != 0) return fail(KVO_E_ARGUMENT, "reserved is {}; it must be 0", c.reserved);
    if ((s = check_kind(c, device_kind)) != KVO_OK) return s;
    if (c.name != nullptr && std::strlen(c.name) > kMaxNameBytes) {
        return fail(KVO_E_ARGUMENT, "the group's name has {} bytes; at most {}",
                    std::strlen(c.name), kMaxNameBytes);
    }
    const uint32_t tokens = or_default(c.device_block_tokens, block_tokens);
    if (tokens == 0 || block_tokens % tokens != 0) {
        return fail(KVO_E_ARGUMENT, "device_block_tokens {} does not divide block_tokens {}",
                    tokens, block_tokens);
    }
    group g;
    g.name = c.name != nullptr ? std::string(c.name) : fmt::format("group{}", n_);
    g.kind = static_cast<kvo_group_kind_t>(c.kind);
    g.ratio = block_tokens / tokens;
    g.lag_tokens = c.lag_tokens;
    g.slot_bytes = c.opaque_bytes;
    if (g.on_device()) {
        const std::span<const kvo_part_t> parts{c.parts, c.n_parts};
        if ((s = check_new_parts(n_, parts, c.n_device_blocks)) != KVO_OK) return s;
        if ((s = slot_size(parts, g.ratio, &g.slot_bytes)) != KVO_OK) return s;
        g.parts.assign(parts.begin(), parts.end());
        g.n_device_blocks = c.n_device_blocks;
    }
    g.slot_stride = align_up(g.slot_bytes, kSlotAlign);
    groups_[n_] = std::move(g);
    *index = n_++;
    return KVO_OK;
}

status group_table::check_new_parts(uint32_t g, std::span<const kvo_part_t> parts,
                                    uint32_t n_blocks) const {
    const auto placed = [](const kvo_part_t& p, uint32_t n, uint32_t group_index, size_t i) {
        return placed_part{p, n, group_index, static_cast<uint32_t>(i)};
    };
    for (size_t i = 0; i < parts.size(); ++i) {
        const placed_part mine = placed(parts[i], n_blocks, g, i);
        status s = check_part(mine);
        for (size_t k = 0; s == KVO_OK && k < i; ++k) {
            s = check_apart(placed(parts[k], n_blocks, g, k), mine);
        }
        for (uint32_t other = 0; other < n_; ++other) {
            if (other == g || !groups_[other].attached) continue;
            const group& o = groups_[other];
            for (size_t k = 0; s == KVO_OK && k < o.parts.size(); ++k) {
                s = check_apart(placed(o.parts[k], o.n_device_blocks, other, k), mine);
            }
        }
        if (s != KVO_OK) return s;
    }
    return KVO_OK;
}

status group_table::attach(uint32_t index, std::span<const kvo_part_t> parts) {
    group& g = groups_[index];
    if (parts.size() != g.parts.size()) {
        return fail(KVO_E_LAYOUT, "group {} has {} parts, attach gives {}", g.name, g.parts.size(),
                    parts.size());
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        const kvo_part_t &now = parts[i], &before = g.parts[i];
        if (now.rows != before.rows || now.row_bytes != before.row_bytes ||
            now.block_stride != before.block_stride ||
            (now.rows > 1 && now.row_pitch != before.row_pitch)) {
            return fail(KVO_E_LAYOUT,
                        "group {} part {}: attach gives {} rows of {} bytes, stride {}, pitch {}; "
                        "registered were "
                        "{} rows of {} bytes, stride {}, pitch {}",
                        g.name, i, now.rows, now.row_bytes, now.block_stride, now.row_pitch,
                        before.rows, before.row_bytes, before.block_stride, before.row_pitch);
        }
    }
    const status s = check_new_parts(index, parts, g.n_device_blocks);
    if (s != KVO_OK) return s;
    std::copy(parts.begin(), parts.end(), g.parts.begin());
    g.attached = true;
    return KVO_OK;
}

uint64_t group_table::block_bytes() const {
    uint64_t sum = 0;
    for (uint32_t g = 0; g < n_; ++g) sum += groups_[g].slot_stride;
    return sum;
}

std::vector<group_layout> group_table::layouts() const {
    std::vector<group_layout> out;
    for (uint32_t g = 0; g < n_; ++g) {
        out.push_back({groups_[g].parts, groups_[g].n_device_blocks, groups_[g].ratio,
                       groups_[g].slot_bytes});
    }
    return out;
}

status group_table::check_lists(std::span<const kvo_blocks_t> lists, uint64_t n_blocks,
                                bool exact_length, uint32_t* mask) const {
    *mask = 0;
    for (const kvo_blocks_t& list : lists) {
        if (list.group >= n_) return fail(KVO_E_RANGE, "group {} of {}", list.group, n_);
        const group& g = groups_[list.group];
        if (!g.on_device()) {
            return fail(KVO_E_ARGUMENT,
                        "group {} is opaque: it has no device blocks; use kvo_reserve", g.name);
        }
        if ((*mask & 1u << list.group) != 0)
            return fail(KVO_E_ARGUMENT, "group {} is named twice", g.name);
        *mask |= 1u << list.group;
        if (list.n > 0 && list.ids == nullptr) {
            return fail(KVO_E_ARGUMENT, "group {}: ids is NULL with n {}", g.name, list.n);
        }
        if (exact_length && list.n != n_blocks * g.ratio) {
            return fail(KVO_E_ARGUMENT,
                        "group {}: {} ids for {} blocks of {} device blocks each; need {}", g.name,
                        list.n, n_blocks, g.ratio, n_blocks * g.ratio);
        }
        for (uint32_t i = 0; i < list.n; ++i) {
            if (list.ids[i] >= g.n_device_blocks && list.ids[i] != KVO_NO_BLOCK) {
                return fail(KVO_E_RANGE,
                            "group {}: ids[{}] is {}; it must be below {} or KVO_NO_BLOCK", g.name,
                            i, list.ids[i], g.n_device_blocks);
            }
        }
    }
    return KVO_OK;
}

}  // namespace kvo

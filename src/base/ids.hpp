// The numbers by which layers talk to each other. Each is a type of its own, so that an entry can't be
// passed where a slot is meant. Plain values, no lifetime.
#pragma once

#include <cstdint>

namespace kvo {

enum class entry_id : uint32_t {};   // record in the index: one key, one slot per group
enum class slot_id : uint32_t {};    // host room for one block of one group
enum class ns_id : uint32_t {};      // namespace: place in the table of namespaces
enum class op_index : uint32_t {};   // record in the op table (the public id also has a serial)

constexpr entry_id kNoEntry{UINT32_MAX};
constexpr slot_id kNoSlot{UINT32_MAX};
constexpr op_index kNoOp{UINT32_MAX};

constexpr uint32_t kMaxGroups = 8;
constexpr uint32_t kKeysPerLock = 512;  // most keys handled in one stretch of the cache lock
constexpr uint32_t kPiecesPerCall = 64; // most descriptors in one device call

template <typename Id>
constexpr uint32_t raw(Id id) noexcept {
    return static_cast<uint32_t>(id);
}

}  // namespace kvo

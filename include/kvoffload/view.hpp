// A list of the caller's, by pointer and count: what std::span is in C++20, for C++17 too. Converts from
// anything with data() and size(). Does not own; valid as long as what it was made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kvoffload/kvo_base.h"

namespace kvoffload {
inline namespace v0_1 {

template <typename T>
class view {
public:
    constexpr view() noexcept = default;
    constexpr view(T* data, size_t size) noexcept : data_(data), size_(size) {}
    template <typename Container,
              typename = std::enable_if_t<
                  !std::is_same_v<std::decay_t<Container>, view> &&
                  std::is_convertible_v<decltype(std::declval<Container&>().data()), T*>>>
    constexpr view(Container&& c) noexcept : data_(c.data()), size_(c.size()) {}  // NOLINT
    // A list of one.
    constexpr view(T& one) noexcept : data_(&one), size_(1) {}  // NOLINT

    constexpr T* data() const noexcept { return data_; }
    constexpr size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + size_; }
    // As the C interface takes it; a list too long for it becomes one that it refuses.
    constexpr uint32_t count() const noexcept {
        return size_ > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(size_);
    }

private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

// Device blocks of one group in token order.
inline kvo_blocks_t blocks_of(uint32_t group, view<const uint32_t> ids) noexcept {
    return {group, ids.count(), ids.data()};
}

}  // namespace v0_1
}  // namespace kvoffload

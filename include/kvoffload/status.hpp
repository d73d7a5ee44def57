// Errors as values: a status, and a result that is a value or a status. Header-only over the C interface;
// plain values, any thread. The namespace carries the version, so that two libraries built with different
// versions of these headers can live in one process.
#pragma once

#include <utility>

#include "kvoffload/kvo_base.h"

#if defined(KVO_EXCEPTIONS)
#include <stdexcept>
#include <string>
#endif

namespace kvoffload {
inline namespace v0_1 {

// What a call came to. Converts to true when it succeeded.
class [[nodiscard]] status {
public:
    constexpr status() noexcept = default;
    constexpr status(kvo_status_t code) noexcept : code_(code) {}  // NOLINT: a C status is a status

    constexpr explicit operator bool() const noexcept { return code_ == KVO_OK; }
    constexpr kvo_status_t code() const noexcept { return code_; }
    const char* name() const noexcept { return kvo_status_name(code_); }
    // Text of the last failing call of this thread: read it before the next call.
    static const char* last_error() noexcept { return kvo_last_error(); }

    // How far the damage reaches.
    constexpr bool is_argument() const noexcept { return in_hundred(1); }
    constexpr bool is_state() const noexcept { return in_hundred(2); }
    constexpr bool is_capacity() const noexcept { return in_hundred(3); }
    constexpr bool is_transfer() const noexcept { return in_hundred(4); }
    constexpr bool is_device() const noexcept { return in_hundred(5); }

    friend constexpr bool operator==(status a, status b) noexcept { return a.code_ == b.code_; }
    friend constexpr bool operator!=(status a, status b) noexcept { return a.code_ != b.code_; }

private:
    constexpr bool in_hundred(int h) const noexcept { return code_ < 0 && -code_ / 100 == h; }
    kvo_status_t code_ = KVO_OK;
};

// A value, or why there is none. T must be default-constructible and movable.
template <typename T>
class [[nodiscard]] result {
public:
    result(T value) noexcept : value_(std::move(value)) {}    // NOLINT
    result(kvo_status_t error) noexcept : error_(error) {}    // NOLINT
    result(status error) noexcept : error_(error) {}          // NOLINT

    explicit operator bool() const noexcept { return static_cast<bool>(error_); }
    status error() const noexcept { return error_; }

    // Only when it holds a value.
    T& operator*() & noexcept { return value_; }
    const T& operator*() const& noexcept { return value_; }
    T&& operator*() && noexcept { return std::move(value_); }
    T* operator->() noexcept { return &value_; }
    const T* operator->() const noexcept { return &value_; }

#if defined(KVO_EXCEPTIONS)
    // The value, or a std::runtime_error with name and text of the failure.
    T& value() & { return check(), value_; }
    T&& value() && { return check(), std::move(value_); }

private:
    void check() const {
        if (!error_) throw std::runtime_error(std::string(error_.name()) + ": " + status::last_error());
    }
#endif

private:
    T value_{};
    status error_;
};

}  // namespace v0_1
}  // namespace kvoffload

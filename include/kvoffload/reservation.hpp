// Raw slots as an object: room for blocks whose bytes the engine writes itself. Given back when it goes
// without commit. Move-only; must not outlive its cache; any thread.
#pragma once

#include "kvoffload/cache.hpp"

namespace kvoffload {
inline namespace v0_1 {

class reservation {
public:
    reservation() noexcept = default;
    reservation(reservation&& other) noexcept
        : cache_(other.cache_), value_(std::exchange(other.value_, kvo_reservation_t{0})), result_(other.result_) {}
    reservation& operator=(reservation&& other) noexcept {
        reservation moved(std::move(other));
        std::swap(cache_, moved.cache_);
        std::swap(value_, moved.value_);
        std::swap(result_, moved.result_);
        return *this;
    }
    ~reservation() { (void)abort(); }

    static result<reservation> create(cache& c, kvo_ns_t ns, view<const kvo_key_t> keys, const kvo_key_t* parent,
                                      const kvo_store_options_t* options = nullptr) noexcept {
        reservation r;
        r.cache_ = c.get();
        const status ok = kvo_reserve(c.get(), ns, keys.data(), keys.count(), parent, options, &r.result_, &r.value_);
        if (!ok) return ok;
        return r;
    }
    const kvo_store_result_t& taken() const noexcept { return result_; }
    // Where to write block i.
    result<view<uint8_t>> slot(uint32_t i, uint32_t group) const noexcept {
        void* data = nullptr;
        uint64_t bytes = 0;
        const status ok = kvo_slot(cache_, value_, i, group, &data, &bytes);
        if (!ok) return ok;
        return view<uint8_t>(static_cast<uint8_t*>(data), static_cast<size_t>(bytes));
    }
    result<kvo_op_t> commit(void* stream) noexcept {
        kvo_op_t op{0};
        const status ok = kvo_commit(cache_, value_, stream, &op);
        if (!ok) return ok;
        value_ = {0};
        return op;
    }
    status abort() noexcept {
        if (value_.value == 0) return {};
        return kvo_abort(cache_, std::exchange(value_, kvo_reservation_t{0}));
    }

private:
    kvo_cache_t* cache_ = nullptr;
    kvo_reservation_t value_{0};
    kvo_store_result_t result_{};
};

}  // namespace v0_1
}  // namespace kvoffload

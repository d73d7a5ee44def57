// Floats that begin on a cache line, so that vector instructions never have to look for an aligned place
// first. Moves, but is not copied: a copy would lie elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

class aligned_floats {
public:
    aligned_floats() = default;
    aligned_floats(aligned_floats&&) noexcept = default;
    aligned_floats& operator=(aligned_floats&&) noexcept = default;
    // What was in it is lost.
    void resize(size_t n) {
        memory_.resize(n + kLineFloats);
        const auto address = reinterpret_cast<uintptr_t>(memory_.data());
        begin_ = (kLineBytes - address % kLineBytes) % kLineBytes / sizeof(float);
    }
    float* data() { return memory_.data() + begin_; }
    float& operator[](size_t i) { return data()[i]; }

private:
    static constexpr size_t kLineBytes = 64, kLineFloats = kLineBytes / sizeof(float);
    std::vector<float> memory_;
    size_t begin_ = 0;
};

}  // namespace engine

// From the storage types of GGUF to floats. Block types: 32 elements behind a half-precision scale (and, for
// Q4_1, a minimum), as ggml defines them.
#include <cstring>

#include "gguf/gguf.hpp"

namespace engine {

namespace {

constexpr uint64_t kBlock = 32;

struct type_info {
    uint32_t type;
    const char* name;
    uint64_t block_elements, block_bytes;
};
constexpr type_info kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},        {30, "BF16", 1, 2},
    {2, "Q4_0", kBlock, 18},  {3, "Q4_1", kBlock, 20}, {8, "Q8_0", kBlock, 34},
};

const type_info* find_type(uint32_t type) {
    for (const type_info& t : kTypes) {
        if (t.type == type) return &t;
    }
    return nullptr;
}

float half_at(const uint8_t* p) {
    uint16_t h;
    std::memcpy(&h, p, sizeof h);
    return half_to_float(h);
}

void q4_block(const uint8_t* nibbles, float scale, float offset, float* to) {
    for (uint64_t i = 0; i < kBlock / 2; ++i) {
        to[i] = static_cast<float>(nibbles[i] & 15) * scale + offset;
        to[i + kBlock / 2] = static_cast<float>(nibbles[i] >> 4) * scale + offset;
    }
}

}  // namespace

float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
    float value;
    if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24
        value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
        return sign != 0 ? -value : value;
    }
    const uint32_t bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | mantissa << 13;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t tensor_bytes(uint32_t type, uint64_t n_elements) {
    const type_info* t = find_type(type);
    if (t == nullptr || n_elements % t->block_elements != 0) return 0;
    return n_elements / t->block_elements * t->block_bytes;
}

const char* tensor_type_name(uint32_t type) {
    static constexpr const char* others[] = {"", "", "", "", "", "", "Q5_0", "Q5_1", "", "Q8_1", "Q2_K",
                                             "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K"};
    const type_info* t = find_type(type);
    if (t != nullptr) return t->name;
    return type < 16 ? others[type] : "unknown";
}

void dequantise(uint32_t type, const uint8_t* from, uint64_t n, float* to) {
    switch (static_cast<tensor_type>(type)) {
        case tensor_type::f32:
            std::memcpy(to, from, n * sizeof(float));
            break;
        case tensor_type::f16:
            for (uint64_t i = 0; i < n; ++i) to[i] = half_at(from + 2 * i);
            break;
        case tensor_type::bf16:
            for (uint64_t i = 0; i < n; ++i) {
                uint16_t upper;
                std::memcpy(&upper, from + 2 * i, sizeof upper);
                const uint32_t bits = uint32_t{upper} << 16;
                std::memcpy(&to[i], &bits, sizeof bits);
            }
            break;
        case tensor_type::q8_0:
            for (uint64_t b = 0; b < n / kBlock; ++b, from += 34) {
                const float scale = half_at(from);
                for (uint64_t i = 0; i < kBlock; ++i) {
                    to[b * kBlock + i] = static_cast<float>(static_cast<int8_t>(from[2 + i])) * scale;
                }
            }
            break;
        case tensor_type::q4_0:
            for (uint64_t b = 0; b < n / kBlock; ++b, from += 18) {
                const float scale = half_at(from);
                q4_block(from + 2, scale, -8 * scale, to + b * kBlock);
            }
            break;
        case tensor_type::q4_1:
            for (uint64_t b = 0; b < n / kBlock; ++b, from += 20) {
                q4_block(from + 4, half_at(from), half_at(from + 2), to + b * kBlock);
            }
            break;
    }
}

}  // namespace engine

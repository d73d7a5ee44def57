// Reads GGUF files (versions 2 and 3) by memory map. Every size and offset of the file is checked before it
// is used, and nothing is allocated by a count that the file merely claims. Errors are text with file,
// offset and reason. Immutable once open; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace engine {

enum class tensor_type : uint32_t {
    f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q8_0 = 8, bf16 = 30,
};

struct tensor_info {
    std::string name;
    std::vector<uint64_t> dims;  // fastest first
    uint32_t type = 0;           // as in the file; see tensor_type
    std::span<const uint8_t> bytes;
    uint64_t n_elements() const {
        uint64_t n = 1;
        for (uint64_t d : dims) n *= d;
        return n;
    }
};

// An array keeps its place in the file; elements are read on demand.
struct gguf_array {
    uint32_t element_type = 0;
    uint64_t count = 0;
    std::span<const uint8_t> bytes;  // all elements
};
using gguf_value = std::variant<uint64_t, int64_t, double, bool, std::string, gguf_array>;

class gguf_file {
public:
    // null with *error set when the file is not usable.
    static std::unique_ptr<gguf_file> open(const std::string& path, std::string* error);
    ~gguf_file();
    gguf_file(const gguf_file&) = delete;
    gguf_file& operator=(const gguf_file&) = delete;

    const std::string& path() const { return path_; }
    const gguf_value* find(const std::string& key) const;
    const tensor_info* tensor(const std::string& name) const;
    // All strings of a string array, views into the file.
    static bool strings(const gguf_value& value, std::vector<std::string_view>* out);

private:
    gguf_file() = default;
    friend class gguf_parser;

    std::string path_;
    const uint8_t* data_ = nullptr;
    uint64_t size_ = 0;
    std::map<std::string, gguf_value> values_;
    std::map<std::string, tensor_info> tensors_;
};

// Bytes of n elements, or 0 for a type we do not read or a count that is not whole blocks.
uint64_t tensor_bytes(uint32_t type, uint64_t n_elements);
const char* tensor_type_name(uint32_t type);
// Turns n elements into floats. The type must be one that tensor_bytes knows.
void dequantise(uint32_t type, const uint8_t* from, uint64_t n, float* to);
float half_to_float(uint16_t half);

}  // namespace engine

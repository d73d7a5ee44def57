#include "gguf/gguf.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace engine {

namespace {

enum value_type : uint32_t {
    v_u8, v_i8, v_u16, v_i16, v_u32, v_i32, v_f32, v_bool, v_string, v_array, v_u64, v_i64, v_f64, v_end
};

uint64_t fixed_bytes(uint32_t type) {
    static constexpr uint64_t sizes[v_end] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < v_end ? sizes[type] : 0;
}

constexpr uint64_t kMostDims = 4;
constexpr uint64_t kMostTensors = 1 << 20;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;  // shortest tensor record

}  // namespace

// A cursor that never leaves the file. Throws inside this file only; open() turns that into text.
class gguf_parser {
public:
    explicit gguf_parser(gguf_file& file) : file_(file) {}

    void run() {
        if (file_.size_ < 4 || std::memcmp(file_.data_, "GGUF", 4) != 0) bad("no GGUF magic");
        at_ = 4;
        const auto version = number<uint32_t>();
        if (version != 2 && version != 3) bad(fmt::format("version {}; 2 and 3 are read", version));
        const auto n_tensors = number<uint64_t>();
        const auto n_values = number<uint64_t>();
        if (n_tensors > kMostTensors) bad(fmt::format("{} tensors", n_tensors));
        for (uint64_t i = 0; i < n_values; ++i) value();
        refuse_split();
        for (uint64_t i = 0; i < n_tensors; ++i) tensor();
        place_tensors();
    }

private:
    [[noreturn]] void bad(const std::string& reason) const { bad_at(at_, reason); }
    [[noreturn]] void bad_at(uint64_t offset, const std::string& reason) const {
        throw std::runtime_error(fmt::format("{}: offset {}: {}", file_.path_, offset, reason));
    }
    const uint8_t* bytes(uint64_t n, const char* what) {
        if (n > file_.size_ - at_) {
            bad(fmt::format("{} of {} bytes, but {} are left in the file", what, n, file_.size_ - at_));
        }
        const uint8_t* p = file_.data_ + at_;
        at_ += n;
        return p;
    }
    template <typename T>
    T number() {
        T value;
        std::memcpy(&value, bytes(sizeof value, "a number"), sizeof value);
        return value;
    }
    std::string text() {
        const auto n = number<uint64_t>();
        if (n > file_.size_ - at_) {
            bad_at(at_ - 8, fmt::format("a string of {} bytes, but {} are left in the file", n, file_.size_ - at_));
        }
        const auto* p = reinterpret_cast<const char*>(bytes(n, "a string"));
        return {p, p + n};
    }
    gguf_array array(const std::string& key) {
        gguf_array a;
        a.element_type = number<uint32_t>();
        const uint64_t count_at = at_;
        a.count = number<uint64_t>();
        const uint8_t* begin = file_.data_ + at_;
        if (a.element_type == v_string) {
            if (a.count > (file_.size_ - at_) / 8) {
                bad_at(count_at, fmt::format("key '{}': {} strings do not fit the file", key, a.count));
            }
            for (uint64_t i = 0; i < a.count; ++i) {
                const auto n = number<uint64_t>();
                bytes(n, "a string");
            }
        } else {
            const uint64_t size = fixed_bytes(a.element_type);
            if (size == 0) {
                bad_at(count_at - 4, fmt::format("key '{}': arrays of type {} are not read", key, a.element_type));
            }
            if (a.count > (file_.size_ - at_) / size) {
                bad_at(count_at, fmt::format("key '{}': {} elements of {} bytes do not fit the file", key,
                                             a.count, size));
            }
            bytes(a.count * size, "an array");
        }
        a.bytes = {begin, file_.data_ + at_};
        return a;
    }
    void value() {
        const std::string key = text();
        const auto type = number<uint32_t>();
        gguf_value v;
        switch (type) {
            case v_u8: v = uint64_t{number<uint8_t>()}; break;
            case v_i8: v = int64_t{number<int8_t>()}; break;
            case v_u16: v = uint64_t{number<uint16_t>()}; break;
            case v_i16: v = int64_t{number<int16_t>()}; break;
            case v_u32: v = uint64_t{number<uint32_t>()}; break;
            case v_i32: v = int64_t{number<int32_t>()}; break;
            case v_f32: v = double{number<float>()}; break;
            case v_bool: v = number<uint8_t>() != 0; break;
            case v_string: v = text(); break;
            case v_array: v = array(key); break;
            case v_u64: v = number<uint64_t>(); break;
            case v_i64: v = number<int64_t>(); break;
            case v_f64: v = number<double>(); break;
            default: bad(fmt::format("key '{}' has unknown type {}", key, type));
        }
        if (!file_.values_.emplace(key, std::move(v)).second) bad(fmt::format("key '{}' appears twice", key));
    }
    void refuse_split() const {
        const gguf_value* count = file_.find("split.count");
        const auto* n = count == nullptr ? nullptr : std::get_if<uint64_t>(count);
        if (n != nullptr && *n > 1) {
            throw std::runtime_error(fmt::format("{}: one of {} parts (split.count): join the parts first",
                                                 file_.path_, *n));
        }
    }
    void tensor() {
        if (file_.size_ - at_ < kLeastTensorBytes) bad("the tensor list is cut off");
        tensor_info t;
        t.name = text();
        const auto n_dims = number<uint32_t>();
        if (n_dims == 0 || n_dims > kMostDims) bad(fmt::format("tensor '{}' has {} dimensions", t.name, n_dims));
        uint64_t n = 1;
        for (uint32_t d = 0; d < n_dims; ++d) {
            t.dims.push_back(number<uint64_t>());
            if (t.dims.back() == 0 || __builtin_mul_overflow(n, t.dims.back(), &n) || n > file_.size_ * 8) {
                bad(fmt::format("tensor '{}': its size overflows the file", t.name));
            }
        }
        t.type = number<uint32_t>();
        offsets_.push_back(number<uint64_t>());
        order_.push_back(t.name);
        const std::string name = t.name;
        if (!file_.tensors_.emplace(name, std::move(t)).second) bad(fmt::format("tensor '{}' appears twice", name));
    }
    void place_tensors() {
        uint64_t alignment = 32;
        const gguf_value* given = file_.find("general.alignment");
        if (given != nullptr && std::holds_alternative<uint64_t>(*given)) alignment = std::get<uint64_t>(*given);
        if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 1 << 20) {
            bad(fmt::format("general.alignment is {}", alignment));
        }
        const uint64_t base = (at_ + alignment - 1) & ~(alignment - 1);
        for (size_t i = 0; i < order_.size(); ++i) {
            tensor_info& t = file_.tensors_.at(order_[i]);
            const uint64_t size = tensor_bytes(t.type, t.n_elements());
            if (size == 0) {
                throw std::runtime_error(
                    fmt::format("{}: tensor '{}' has type {} ({}), which is not read (F32, F16, BF16, "
                                "Q8_0, Q4_0, Q4_1 are), or a row that is not whole blocks",
                                file_.path_, t.name, t.type, tensor_type_name(t.type)));
            }
            if (base > file_.size_ || offsets_[i] > file_.size_ - base || size > file_.size_ - base - offsets_[i]) {
                bad_at(base, fmt::format("tensor '{}': {} bytes at +{} end after the file of {} bytes", t.name,
                                         size, offsets_[i], file_.size_));
            }
            t.bytes = {file_.data_ + base + offsets_[i], size};
        }
    }

    gguf_file& file_;
    uint64_t at_ = 0;
    std::vector<std::string> order_;
    std::vector<uint64_t> offsets_;
};

gguf_file::~gguf_file() {
    if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

std::unique_ptr<gguf_file> gguf_file::open(const std::string& path, std::string* error) {
    std::unique_ptr<gguf_file> file(new gguf_file);
    file->path_ = path;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
        *error = fmt::format("{}: cannot be read, is empty, or is no plain file", path);
        if (fd >= 0) close(fd);
        return nullptr;
    }
    file->size_ = static_cast<uint64_t>(info.st_size);
    void* at = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED) {
        *error = fmt::format("{}: cannot be mapped ({} bytes)", path, file->size_);
        return nullptr;
    }
    file->data_ = static_cast<const uint8_t*>(at);
    try {
        gguf_parser(*file).run();
    } catch (const std::exception& e) {
        *error = e.what();
        return nullptr;
    }
    return file;
}

const gguf_value* gguf_file::find(const std::string& key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
}

const tensor_info* gguf_file::tensor(const std::string& name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : &it->second;
}

bool gguf_file::strings(const gguf_value& value, std::vector<std::string_view>* out) {
    const auto* a = std::get_if<gguf_array>(&value);
    if (a == nullptr || a->element_type != v_string) return false;
    const uint8_t* p = a->bytes.data();
    for (uint64_t i = 0; i < a->count; ++i) {  // lengths were checked when the file was read
        uint64_t n;
        std::memcpy(&n, p, sizeof n);
        out->emplace_back(reinterpret_cast<const char*>(p + 8), n);
        p += 8 + n;
    }
    return true;
}

}  // namespace engine

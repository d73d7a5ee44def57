// Stored bytes with a look ahead at the first few, from which the packing is told. Owns the
// descriptor, except that of standard input. One user at a time.
#pragma once

#include <array>
#include <span>

#include "trace/byte_source.hpp"

namespace kvo::trace {

class raw_source final : public byte_source {
public:
    static std::unique_ptr<raw_source> open(const std::string& path, std::string* reason);
    ~raw_source() override;
    raw_source(const raw_source&) = delete;
    raw_source& operator=(const raw_source&) = delete;

    size_t read(char* out, size_t n, std::string* reason) override;
    uint64_t offset_bytes() const override { return offset_bytes_; }
    uint64_t size_bytes() const override { return size_bytes_; }

    // The first bytes of the file, at most six; read() still gives them.
    std::span<const char> head() const { return {head_.data(), head_size_}; }

private:
    raw_source(int fd, uint64_t size_bytes) : fd_(fd), size_bytes_(size_bytes) {}
    size_t read_fd(char* out, size_t n, std::string* reason);

    int fd_;
    uint64_t size_bytes_;
    uint64_t offset_bytes_ = 0;
    std::array<char, 6> head_{};
    size_t head_size_ = 0;
    size_t head_given_ = 0;
};

}  // namespace kvo::trace

// Bytes of a file or of standard input, unpacked on the way when they begin like xz or gzip data.
// The source owns the descriptor and the decoder. One user at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace kvo::trace {

class byte_source {
public:
    virtual ~byte_source() = default;

    // Fills up to `n` bytes and returns how many; 0 is the end, or a failure when *reason is set.
    virtual size_t read(char* out, size_t n, std::string* reason) = 0;
    // Position in the file as stored, for progress and error texts.
    virtual uint64_t offset_bytes() const = 0;
    // Size of the file as stored; 0 when it is not a regular file.
    virtual uint64_t size_bytes() const = 0;
};

// "-" is standard input. NULL with *reason set when it cannot be opened.
std::unique_ptr<byte_source> open_byte_source(const std::string& path, std::string* reason);

}  // namespace kvo::trace

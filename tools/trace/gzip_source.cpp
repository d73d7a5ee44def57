// The gzip side of packed_source.hpp.
#include <zlib.h>

#include <array>
#include <utility>

#include "trace/packed_source.hpp"

namespace kvo::trace {
namespace {

// Largest window, and a gzip header expected (+16) rather than a zlib one.
constexpr int kGzipWindowBits = 15 + 16;

class gzip_source final : public byte_source {
public:
    explicit gzip_source(std::unique_ptr<byte_source> raw) : raw_(std::move(raw)) {}
    ~gzip_source() override { inflateEnd(&stream_); }
    gzip_source(const gzip_source&) = delete;
    gzip_source& operator=(const gzip_source&) = delete;

    bool init() { return inflateInit2(&stream_, kGzipWindowBits) == Z_OK; }

    size_t read(char* out, size_t n, std::string* reason) override {
        // zlib counts in 32 bits.
        const size_t room = n < (1U << 30) ? n : (1U << 30);
        stream_.next_out = reinterpret_cast<Bytef*>(out);
        stream_.avail_out = static_cast<uInt>(room);
        while (stream_.avail_out == room) {
            if (stream_.avail_in == 0 && !refill(reason)) return 0;
            if (between_members_) {
                inflateReset(&stream_);
                between_members_ = false;
            }
            const int code = inflate(&stream_, Z_NO_FLUSH);
            between_members_ = code == Z_STREAM_END;
            if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
                *reason = "the gzip data is damaged";
                return 0;
            }
        }
        return room - stream_.avail_out;
    }

    uint64_t offset_bytes() const override { return raw_->offset_bytes() - stream_.avail_in; }
    uint64_t size_bytes() const override { return raw_->size_bytes(); }

private:
    bool refill(std::string* reason) {
        const size_t got = raw_->read(buffer_.data(), buffer_.size(), reason);
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(got);
        if (got == 0 && reason->empty() && !between_members_) {
            *reason = "the gzip data ends too early";
        }
        return got > 0;
    }

    std::unique_ptr<byte_source> raw_;
    z_stream stream_ = {};
    std::array<char, 1 << 16> buffer_{};
    bool between_members_ = false;
};

}  // namespace

std::unique_ptr<byte_source> make_gzip_source(std::unique_ptr<byte_source> raw) {
    auto source = std::make_unique<gzip_source>(std::move(raw));
    if (!source->init()) return nullptr;
    return source;
}

}  // namespace kvo::trace

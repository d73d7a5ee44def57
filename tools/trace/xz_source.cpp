// The xz side of packed_source.hpp.
#include <lzma.h>

#include <array>
#include <utility>

#include "trace/packed_source.hpp"

namespace kvo::trace {
namespace {

// "xz -9" needs 65 MiB to unpack; a header that asks for much more is an attack or an accident.
constexpr uint64_t kUnpackMemoryBytes = uint64_t{256} << 20;

const char* text_of(lzma_ret code) {
    switch (code) {
        case LZMA_BUF_ERROR:
            return "the xz data ends too early";
        case LZMA_FORMAT_ERROR:
            return "something that is not xz data follows the xz data";
        case LZMA_OPTIONS_ERROR:
            return "the xz data uses an option that liblzma does not know";
        case LZMA_MEMLIMIT_ERROR:
            return "the xz data asks for more than 256 MiB to unpack";
        case LZMA_MEM_ERROR:
            return "no memory to unpack the xz data";
        default:
            return "the xz data is damaged";
    }
}

class xz_source final : public byte_source {
public:
    explicit xz_source(std::unique_ptr<byte_source> raw) : raw_(std::move(raw)) {}
    ~xz_source() override { lzma_end(&stream_); }
    xz_source(const xz_source&) = delete;
    xz_source& operator=(const xz_source&) = delete;

    bool init() {
        return lzma_stream_decoder(&stream_, kUnpackMemoryBytes, LZMA_CONCATENATED) == LZMA_OK;
    }

    size_t read(char* out, size_t n, std::string* reason) override {
        stream_.next_out = reinterpret_cast<uint8_t*>(out);
        stream_.avail_out = n;
        while (!ended_ && stream_.avail_out == n) {
            if (stream_.avail_in == 0 && !raw_ended_) {
                stream_.avail_in = raw_->read(buffer_.data(), buffer_.size(), reason);
                stream_.next_in = reinterpret_cast<const uint8_t*>(buffer_.data());
                if (!reason->empty()) return 0;
                raw_ended_ = stream_.avail_in == 0;
            }
            const lzma_ret code = lzma_code(&stream_, raw_ended_ ? LZMA_FINISH : LZMA_RUN);
            ended_ = code == LZMA_STREAM_END;
            if (code != LZMA_OK && !ended_) {
                *reason = text_of(code);
                return 0;
            }
        }
        return n - stream_.avail_out;
    }

    uint64_t offset_bytes() const override { return raw_->offset_bytes() - stream_.avail_in; }
    uint64_t size_bytes() const override { return raw_->size_bytes(); }

private:
    std::unique_ptr<byte_source> raw_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    std::array<char, 1 << 16> buffer_{};
    bool raw_ended_ = false;
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<byte_source> make_xz_source(std::unique_ptr<byte_source> raw) {
    auto source = std::make_unique<xz_source>(std::move(raw));
    if (!source->init()) return nullptr;
    return source;
}

}  // namespace kvo::trace

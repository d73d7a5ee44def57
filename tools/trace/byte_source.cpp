#include "trace/byte_source.hpp"

#include <string_view>
#include <utility>

#include "trace/packed_source.hpp"
#include "trace/raw_source.hpp"

namespace kvo::trace {

std::unique_ptr<byte_source> open_byte_source(const std::string& path, std::string* reason) {
    using namespace std::string_view_literals;
    std::unique_ptr<raw_source> raw = raw_source::open(path, reason);
    if (raw == nullptr) return nullptr;

    const std::string_view head(raw->head().data(), raw->head().size());
    std::unique_ptr<byte_source> source;
    if (head ==
        "\xfd"
        "7zXZ\0"sv) {
        source = make_xz_source(std::move(raw));
    } else if (head.starts_with("\x1f\x8b"sv)) {
        source = make_gzip_source(std::move(raw));
    } else {
        source = std::move(raw);
    }
    if (source == nullptr) *reason = "no memory to unpack it";
    return source;
}

}  // namespace kvo::trace

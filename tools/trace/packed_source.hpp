// Unpacking sources over a raw one: xz by liblzma, gzip by zlib. Both read several packed streams
// one after another as one, and report data that ends early. They own the raw source.
#pragma once

#include "trace/byte_source.hpp"

namespace kvo::trace {

// NULL when the decoder has no memory.
std::unique_ptr<byte_source> make_xz_source(std::unique_ptr<byte_source> raw);
std::unique_ptr<byte_source> make_gzip_source(std::unique_ptr<byte_source> raw);

}  // namespace kvo::trace

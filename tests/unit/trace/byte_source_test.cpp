// Packed and damaged files, and lines at the limits of the buffer. Single-threaded.
#include "trace/byte_source.hpp"

#include <lzma.h>
#include <zlib.h>

#include <cstring>
#include <string>

#include "support/catch.hpp"
#include "trace/line_reader.hpp"
#include "trace_fixture.hpp"

using namespace kvo::test;

namespace {

std::string pack_xz(const std::string& text) {
    std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
    size_t size = 0;
    const lzma_ret code = lzma_easy_buffer_encode(
        6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()), text.size(),
        reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size());
    REQUIRE(code == LZMA_OK);
    packed.resize(size);
    return packed;
}

std::string pack_gzip(const std::string& text) {
    z_stream stream = {};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string packed(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

std::string long_csv(size_t lines) {
    std::string text;
    for (size_t i = 0; i < lines; ++i) {
        text += std::to_string(i) + ",key" + std::to_string(i * 7919 % 1000) + "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("xz and gzip files read like the plain one, also in several pieces") {
    const std::string text = long_csv(20'000);
    const std::string half = text.substr(0, text.size() / 2);
    const std::string rest = text.substr(text.size() / 2);
    const auto plain = read_text(text);
    REQUIRE(plain.error == "");
    for (const auto& packed : {pack_xz(text), pack_gzip(text), pack_xz(half) + pack_xz(rest),
                               pack_gzip(half) + pack_gzip(rest)}) {
        const auto r = read_text(packed);
        REQUIRE(r.error == "");
        REQUIRE(r.requests.size() == plain.requests.size());
        CHECK(r.info.unique_blocks == 1000);
        CHECK(r.requests.back().ids == plain.requests.back().ids);
    }
}

TEST_CASE("A packed file cut anywhere is refused, with an offset when the packing says so") {
    const std::string text = long_csv(200);
    for (const auto& packed : {pack_xz(text), pack_gzip(text)}) {
        for (size_t size = 0; size < packed.size(); ++size) {
            CAPTURE(size);
            CHECK(read_text(packed.substr(0, size)).error != "");
        }
        CHECK_THAT(read_text(packed.substr(0, packed.size() - 1)).error,
                   contains(": offset ") && contains("ends too early"));
    }
}

TEST_CASE("A packed file with a bit turned over is refused or reads the same") {
    const std::string text = long_csv(50);
    for (const auto& packed : {pack_xz(text), pack_gzip(text)}) {
        for (size_t bit = 0; bit < packed.size() * 8; bit += 3) {
            std::string damaged = packed;
            damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
            const auto r = read_text(damaged);
            CAPTURE(bit);
            CHECK((r.error != "" || r.requests.size() == 50));
        }
    }
}

TEST_CASE("What follows the packed data must be packed data, too") {
    const std::string text = long_csv(50);
    CHECK_THAT(read_text(pack_xz(text) + "and more").error, contains("offset"));
    CHECK_THAT(read_text(pack_gzip(text) + "and more").error, contains("offset"));
}

TEST_CASE("A file that is not there is refused with the system's reason") {
    kvo::trace::summary info;
    std::vector<kvo::trace::request> requests;
    const auto fault = kvo::trace::read_requests("/nonexistent/trace.jsonl", {}, &requests, &info);
    REQUIRE(fault);
    CHECK(fault->text == "/nonexistent/trace.jsonl: cannot be opened: No such file or directory");
    const auto folder = kvo::trace::read_requests("/", {}, &requests, &info);
    REQUIRE(folder);
    CHECK_THAT(folder->text, contains("cannot be read: Is a directory"));
}

TEST_CASE("Lines of any length up to the limit come whole, with and without a last newline") {
    for (const size_t size :
         {size_t{1}, size_t{65'535}, size_t{65'536}, size_t{65'537}, size_t{200'000}}) {
        const std::string key(size, 'k');
        for (const char* end : {"\n", ""}) {
            const auto r = read_text("0," + key + "\n1,short\n2," + key + end);
            CAPTURE(size);
            REQUIRE(r.error == "");
            REQUIRE(r.requests.size() == 3);
            CHECK(r.requests[2].ids == r.requests[0].ids);
            CHECK(r.info.unique_blocks == 2);
        }
    }
}

TEST_CASE("A line without end is refused before it fills the memory") {
    const std::string text = "0,A\n" + std::string(kvo::trace::line_reader::kLineBytesMax + 1, 'x');
    CHECK_THAT(read_text(text).error, contains(":2: line longer than 33554432 bytes"));
    CHECK_THAT(read_text(pack_xz(text)).error, contains(":2: line longer than 33554432 bytes"));
}

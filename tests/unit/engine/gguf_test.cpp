#include "gguf/gguf.hpp"

#include <cstdio>
#include <cstring>

#include "model/model.hpp"
#include "support/catch.hpp"

using namespace engine;

namespace {

// Writes the pieces of a GGUF file one after another.
struct builder {
    std::string bytes = "GGUF";
    template <typename T>
    builder& put(T value) {
        char raw[sizeof value];
        std::memcpy(raw, &value, sizeof value);
        bytes.append(raw, sizeof value);
        return *this;
    }
    builder& text(const std::string& s) {
        put<uint64_t>(s.size());
        bytes += s;
        return *this;
    }
    builder& head(uint64_t n_tensors, uint64_t n_values) {
        return put<uint32_t>(3).put<uint64_t>(n_tensors).put<uint64_t>(n_values);
    }
};

std::string error_of(const std::string& bytes) {
    char name[] = "/tmp/kvo_gguf_XXXXXX";
    const int fd = mkstemp(name);
    FILE* f = fdopen(fd, "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
    std::string error;
    const auto file = gguf_file::open(name, &error);
    if (file) {
        const auto m = load_model(*file, &error);
        if (m) error = "";
    }
    std::remove(name);
    return error;
}

}  // namespace

TEST_CASE("a key length beyond the file is refused with its offset and nothing of that size is allocated") {
    builder b;
    b.head(0, 1).put<uint64_t>(0xFFFFFFFFFFFF0000u);
    CHECK_THAT(error_of(b.bytes), kvo::test::contains("offset 24"));
}

TEST_CASE("arrays of arrays are refused by key, and counts that wrap by offset") {
    builder nested;
    nested.head(0, 2).text("x").put<uint32_t>(9).put<uint32_t>(9).put<uint64_t>(1).put<uint32_t>(4).put<uint64_t>(1).put<uint32_t>(7);
    nested.text("y").put<uint32_t>(4).put<uint32_t>(1);
    CHECK_THAT(error_of(nested.bytes), kvo::test::contains("'x'"));
    builder wraps;
    wraps.head(0, 1).text("x").put<uint32_t>(9).put<uint32_t>(10).put<uint64_t>((uint64_t{1} << 61) + 1).put<uint64_t>(0);
    CHECK_THAT(error_of(wraps.bytes), kvo::test::contains("offset"));
}

TEST_CASE("parts of a split model and per-layer head counts are refused by name") {
    builder split;
    split.head(0, 1).text("split.count").put<uint32_t>(2).put<uint16_t>(3);
    CHECK_THAT(error_of(split.bytes), kvo::test::contains("one of 3 parts"));
    builder heads;
    heads.head(0, 6).text("general.architecture").put<uint32_t>(8).text("llama");
    for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count"}) {
        heads.text(key).put<uint32_t>(4).put<uint32_t>(2);
    }
    heads.text("llama.attention.head_count_kv").put<uint32_t>(9).put<uint32_t>(4).put<uint64_t>(2).put<uint32_t>(0).put<uint32_t>(2);
    CHECK_THAT(error_of(heads.bytes), kvo::test::contains("llama.attention.head_count_kv"));
}

TEST_CASE("a tensor type that is not read is named with its tensor") {
    builder b;
    b.head(1, 0).text("blk.0.attn_q.weight").put<uint32_t>(1).put<uint64_t>(256).put<uint32_t>(14).put<uint64_t>(0);
    b.bytes.resize(4096);
    const std::string error = error_of(b.bytes);
    CHECK_THAT(error, kvo::test::contains("blk.0.attn_q.weight"));
    CHECK_THAT(error, kvo::test::contains("Q6_K"));
}

TEST_CASE("a file cut anywhere is an error with a reason, never a crash") {
    builder b;
    b.head(1, 2).text("general.architecture").put<uint32_t>(8).text("llama");
    b.text("list").put<uint32_t>(9).put<uint32_t>(8).put<uint64_t>(2).text("a").text("bc");
    b.text("t").put<uint32_t>(2).put<uint64_t>(32).put<uint64_t>(2).put<uint32_t>(8).put<uint64_t>(0);
    b.bytes.resize((b.bytes.size() + 31) / 32 * 32 + 68);
    for (size_t n = 1; n < b.bytes.size(); ++n) {
        INFO("cut after " << n);
        CHECK_FALSE(error_of(b.bytes.substr(0, n)).empty());
    }
}

TEST_CASE("each storage type turns into the floats it stands for") {
    float out[32];
    const uint16_t halves[] = {0x3C00, 0xC000, 0x0001, 0x7C00};
    dequantise(1, reinterpret_cast<const uint8_t*>(halves), 4, out);
    CHECK(out[0] == 1.0f);
    CHECK(out[1] == -2.0f);
    CHECK(out[2] == Approx(5.9604645e-8));
    CHECK(out[3] > 1e38f);
    uint8_t block[34] = {0x00, 0x38};  // scale 0.5
    for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<uint8_t>(i - 16);
    dequantise(8, block, 32, out);
    CHECK(out[0] == -8.0f);
    CHECK(out[31] == 7.5f);
    uint8_t q4[20] = {0x00, 0x3C, 0x00, 0xC0};  // scale 1, minimum -2
    q4[4] = 0x5A;
    dequantise(3, q4, 32, out);
    CHECK(out[0] == 8.0f);   // 10 - 2
    CHECK(out[16] == 3.0f);  // 5 - 2
    uint8_t q40[18] = {0x00, 0x3C, 0x5A};
    dequantise(2, q40, 32, out);
    CHECK(out[0] == 2.0f);    // 10 - 8
    CHECK(out[16] == -3.0f);  // 5 - 8
    CHECK(tensor_bytes(14, 256) == 0);
    CHECK(tensor_bytes(8, 33) == 0);
}

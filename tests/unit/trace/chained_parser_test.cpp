// Mooncake and rtp-llm lines: ids, the unit that the file does not carry, and time.
// Single-threaded.
#include <string>

#include "support/catch.hpp"
#include "trace_fixture.hpp"

using namespace kvo::test;
using kvo::trace::format;

namespace {

const std::string two_small_blocks =
    R"({"timestamp": 0, "input_length": 130, "output_length": 1, "hash_ids": [1, 2, 3]}
{"timestamp": 100, "input_length": 150, "output_length": 1, "hash_ids": [1, 2, 9]}
)";

std::string mooncake_at(const std::string& second_time) {
    return R"({"timestamp": 1725000000000, "input_length": 5, "output_length": 1, "hash_ids": [1]})"
           "\n{" +
           second_time + R"("input_length": 5, "output_length": 1, "hash_ids": [1]}
{"timestamp": 1725000001500, "input_length": 5, "output_length": 1, "hash_ids": [2]}
)";
}

}  // namespace

TEST_CASE("Mooncake ids are numbered by first appearance and keep their order") {
    const auto r = read_text(
        R"({"timestamp": 3, "input_length": 1000, "output_length": 7, "hash_ids": [70, 12]}
{"timestamp": 3, "input_length": 1025, "output_length": 0, "hash_ids": [70, 5, 12]})");
    REQUIRE(r.error == "");
    CHECK(r.info.kind == format::mooncake);
    CHECK(r.info.block_tokens == 512);
    CHECK(r.info.unique_blocks == 3);
    REQUIRE(r.requests.size() == 2);
    CHECK(r.requests[0].ids == ids{0, 1});
    CHECK(r.requests[0].input_tokens == 1000);
    CHECK(r.requests[0].output_tokens == 7);
    CHECK(r.requests[0].timestamp_ms == 3);
    CHECK(r.requests[1].ids == ids{0, 2, 1});
}

TEST_CASE("A block size that the lengths contradict is refused with the sizes that fit") {
    const auto r = read_text(two_small_blocks);
    CHECK_THAT(r.error, contains(":1: 3 ids for 130 tokens; 50 to 64 would fit both lines"));
    CHECK(r.requests.empty());
    CHECK(read_text(two_small_blocks, 512).error == r.error);
    CHECK_THAT(read_text(two_small_blocks, 49).error,
               contains(":2: 4 ids") || contains(":2: 3 ids"));
}

TEST_CASE("The sizes named for a misfit are exactly those that are then accepted") {
    for (uint32_t size = 40; size <= 80; ++size) {
        CAPTURE(size);
        CHECK(read_text(two_small_blocks, size).error.empty() == (size >= 50 && size <= 64));
    }
}

TEST_CASE("Lines that no single block size explains are reported as such") {
    const auto r = read_text(
        R"({"timestamp": 0, "input_length": 100, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 1000, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 0, "output_length": 1, "hash_ids": []})");
    CHECK_THAT(r.error, contains(":1: 2 ids for 100 tokens; no block size fits all 3 lines"));
}

TEST_CASE("A request with tokens and no ids fits no block size") {
    const auto r =
        read_text(R"({"timestamp": 0, "input_length": 100, "output_length": 1, "hash_ids": []})");
    CHECK_THAT(r.error, contains(":1: 0 ids for 100 tokens; no block size fits this line"));
}

TEST_CASE("A single id says only how small a block cannot be") {
    const auto r =
        read_text(R"({"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [4]})");
    CHECK_THAT(r.error, contains("600 or more would fit this line"));
}

TEST_CASE("Absolute times are read and the span is their difference") {
    const auto r = read_text(mooncake_at(R"("timestamp": 1725000000500, )"));
    REQUIRE(r.error == "");
    CHECK(r.info.last_ms - r.info.first_ms == 1500);
    CHECK(r.info.requests == 3);
}

TEST_CASE("A time that cannot be replayed is refused with its line and value") {
    const auto line_two = [](const std::string& time) { return read_text(mooncake_at(time)); };
    CHECK_THAT(line_two(R"("timestamp": null, )").error, contains(":2: timestamp is null"));
    CHECK_THAT(line_two("").error, contains(":2: timestamp is missing"));
    CHECK_THAT(line_two(R"("timestamp": NaN, )").error, contains(":2: ") && contains("'NaN'"));
    CHECK_THAT(line_two(R"("timestamp": "soon", )").error, contains(":2: timestamp is \"soon\""));
    CHECK_THAT(line_two(R"("timestamp": -4, )").error, contains(":2: timestamp is -4"));
    CHECK_THAT(line_two(R"("timestamp": 1724999999000, )").error,
               contains(":2: timestamp 1724999999000 is before 1725000000000"));
    CHECK(line_two(R"("timestamp": null, )").requests.size() == 1);
}

TEST_CASE("Lengths and ids of the wrong kind are refused with their line and value") {
    const auto with = [](const std::string& rest) {
        return read_text("{\"timestamp\": 0, " + rest + "}").error;
    };
    CHECK_THAT(with(R"("input_length": -1, "hash_ids": [])"), contains(":1: input_length is -1"));
    CHECK_THAT(with(R"("input_length": 2.5, "hash_ids": [])"), contains("input_length is 2.5"));
    CHECK_THAT(with(R"("input_length": 18446744073709551615, "hash_ids": [1])"),
               contains("input_length is 18446744073709551615"));
    CHECK_THAT(with(R"("input_length": 1, "output_length": "x", "hash_ids": [1])"),
               contains("output_length is \"x\""));
    CHECK_THAT(with(R"("input_length": 1, "hash_ids": 7)"), contains("hash_ids is 7, not a list"));
    CHECK_THAT(with(R"("input_length": 1, "hash_ids": [-7])"), contains("block id -7"));
    CHECK_THAT(with(R"("input_length": 1, "hash_ids": ["7x"])"), contains("block id \"7x\""));
    CHECK_THAT(with(R"("input_length": 1, "hash_ids": [[]])"), contains("block id []"));
    CHECK_THAT(with(R"("input_length": 1)"), contains(":1: no block ids; stats only"));
}

TEST_CASE("rtp-llm lines give whole blocks only, with ids of 64 bits as text") {
    const auto r = read_text(
        R"({"ts": 0, "il": 3000, "ol": 0, "bh": ["9222992796114690886", "18446744073709551615"]}
{"ts": 56, "il": 93, "ol": 4, "bh": []}
{"ts": 60, "il": 1024, "ol": 4, "bh": ["18446744073709551615"]})");
    REQUIRE(r.error == "");
    CHECK(r.info.kind == format::rtpllm);
    CHECK(r.info.block_tokens == 1024);
    REQUIRE(r.requests.size() == 3);
    CHECK(r.requests[0].ids == ids{0, 1});
    CHECK(r.requests[1].ids == ids{});
    CHECK(r.requests[2].ids == ids{1});
}

TEST_CASE("rtp-llm lines with another block size are refused with the sizes that fit") {
    const auto r = read_text(R"({"ts": 0, "il": 3000, "ol": 0, "bh": ["1", "2", "3"]})");
    CHECK_THAT(r.error, contains(":1: 3 ids for 3000 tokens; 751 to 1000 would fit this line"));
}

// Plain "timestamp,key" lines, and traces that have no block ids at all. Single-threaded.
#include <string>

#include "support/catch.hpp"
#include "trace_fixture.hpp"

using namespace kvo::test;
using kvo::trace::format;

TEST_CASE("A comment line is skipped and keys may be letters that differ in case") {
    const auto r = read_text("# time,key\n0,A\n1,B\n2,A\n3,a\n");
    REQUIRE(r.error == "");
    CHECK(r.info.kind == format::csv);
    CHECK(r.info.unique_blocks == 3);
    REQUIRE(r.requests.size() == 4);
    CHECK(r.requests[2].ids == ids{0});
    CHECK(r.requests[3].ids == ids{2});
}

TEST_CASE("Further columns, blanks, a heading and carriage returns do not matter") {
    const auto r = read_text("\xef\xbb\xbftimestamp, key, size\r\n\r\n0, k1 , 4096\r\n0.5,k1\r\n");
    REQUIRE(r.error == "");
    REQUIRE(r.requests.size() == 2);
    CHECK(r.requests[1].ids == ids{0});
    CHECK(r.requests[1].timestamp_ms == 0.5);
}

TEST_CASE("A trace of lengths is refused because reuse cannot be told from it") {
    const auto r =
        read_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n");
    CHECK_THAT(r.error, contains(":1: no block ids; stats only"));
}

TEST_CASE("CSV lines without a usable time or key are refused with their line") {
    CHECK_THAT(read_text("0,A\nnan,A\n").error, contains(":2: timestamp is \"nan\""));
    CHECK_THAT(read_text("0,A\n,A\n").error, contains(":2: timestamp is \"\""));
    CHECK_THAT(read_text("0,A\n1e999,A\n").error, contains(":2: timestamp is"));
    CHECK_THAT(read_text("5,A\n4,A\n").error, contains(":2: timestamp 4 is before 5"));
    CHECK_THAT(read_text("0,A\n1,\n").error, contains(":2: no key"));
    CHECK_THAT(read_text("0,A\n1\n").error, contains(":2: no key"));
}

TEST_CASE("Files that are no trace are refused") {
    CHECK_THAT(read_text("").error, contains("no requests in it"));
    CHECK_THAT(read_text("\n \n").error, contains("no requests in it"));
    CHECK_THAT(read_text("hello\n").error, contains(":1: not a known trace"));
    CHECK_THAT(read_text(std::string_view("\x7f"
                                          "ELF\0\1,",
                                          7))
                   .error,
               contains(":1: not a known trace"));
    CHECK_THAT(read_text("{\"a\": 1}\n").error, contains(":1: not a known trace"));
    CHECK_THAT(read_text("{\"hash_ids\": [1, 2\n").error, contains(":1: not valid JSON"));
}

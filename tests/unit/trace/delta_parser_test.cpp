// The formats that store differences: LMCache agent lines and WEKA sessions. Single-threaded.
#include <string>

#include "support/catch.hpp"
#include "trace_fixture.hpp"

using namespace kvo::test;
using kvo::trace::format;

namespace {

// Ids 10..13, then 10 11 50, then another session that shares two.
const std::string agents =
    R"({"timestamp": 0, "session": 0, "input_bytes": 200, "output_bytes": 9, "k": 0, "a": [[10, 4]]}
{"timestamp": 5, "session": 0, "input_bytes": 192, "output_bytes": 0, "k": 2, "a": [[50, 1]]}
{"timestamp": 9, "session": 3, "input_bytes": 129, "k": 0, "a": [[10, 2], [90, 1]]}
)";

std::string weka(const std::string& requests) {
    return R"({"trace": "t1", "block": 64, "models": []})"
           "\n" +
           requests;
}

}  // namespace

TEST_CASE("LMCache lists are rebuilt from the session's list before") {
    const auto r = read_text(agents);
    REQUIRE(r.error == "");
    CHECK(r.info.kind == format::lmcache);
    CHECK(r.info.block_tokens == 16);
    REQUIRE(r.requests.size() == 3);
    CHECK(r.requests[0].ids == ids{0, 1, 2, 3});
    CHECK(r.requests[1].ids == ids{0, 1, 4});
    CHECK(r.requests[2].ids == ids{0, 1, 5});
    CHECK(r.requests[2].session == 3);
    CHECK(r.requests[0].input_tokens == 50);
}

TEST_CASE("A coarser LMCache block is the id at every n-th position") {
    const auto r = read_text(agents, 32);
    REQUIRE(r.error == "");
    REQUIRE(r.requests.size() == 3);
    CHECK(r.requests[0].ids == ids{0, 1});
    CHECK(r.requests[1].ids == ids{0});
    CHECK(r.requests[2].ids == ids{0});
    CHECK(r.info.unique_blocks == 2);
    CHECK_THAT(read_text(agents, 24).error, contains("multiple of 16"));
}

TEST_CASE("A difference that contradicts the list before or the length is refused") {
    const auto line = [](const std::string& rest) {
        return read_text(R"({"timestamp": 0, "session": 0, "input_bytes": 128, )" + rest + "}")
            .error;
    };
    CHECK(line(R"("k": 0, "a": [[7, 2]])").empty());
    CHECK_THAT(line(R"("k": 1, "a": [[7, 1]])"),
               contains(":1: k is 1, but the list before it has 0"));
    CHECK_THAT(line(R"("k": 0, "a": [[7, 1]])"), contains("1 ids, not 2 ids"));
    CHECK_THAT(line(R"("k": 0, "a": [[7, 3]])"), contains("more than 2 ids"));
    CHECK_THAT(line(R"("k": 0, "a": [[7, 18446744073709551615]])"), contains("passes the largest"));
    CHECK_THAT(line(R"("k": 0, "a": [[7, 0], [7, 2]])"), contains("[7,0]"));
    CHECK_THAT(line(R"("k": 0, "a": [[7]])"), contains("[first, count]"));
    CHECK_THAT(line(R"("k": 0, "a": [7, 2])"), contains("[first, count]"));
    CHECK_THAT(line(R"("k": -1, "a": [])"), contains("k is -1"));
    CHECK_THAT(line(R"("a": [])"), contains("k is missing"));
}

TEST_CASE("A short line cannot ask for more ids than any real request has") {
    const auto r =
        read_text(R"({"timestamp": 0, "session": 0, "input_bytes": 640000000000, "k": 0, )"
                  R"("a": [[1, 10000000000]]})");
    CHECK_THAT(r.error, contains("10000000000 block ids in one request"));
}

TEST_CASE("WEKA sessions of one user follow each other with a pause of a minute") {
    kvo::trace::read_options options;
    options.users = 1;
    options.block_tokens = 64;
    const auto r = read_text(weka(R"({"t": 4.0, "i": 130, "o": 1, "k": 0, "a": [[1, 2]]}
{"t": 6.5, "i": 64, "o": 1, "k": 1, "a": []}
)") + weka(R"({"t": 100, "i": 64, "o": 1, "k": 0, "a": [[1, 1]]})"),
                             options);
    REQUIRE(r.error == "");
    REQUIRE(r.requests.size() == 3);
    CHECK(r.requests[0].timestamp_ms == 0);
    CHECK(r.requests[1].timestamp_ms == 2500);
    CHECK(r.requests[2].timestamp_ms == 62500);
    CHECK(r.requests[1].ids == ids{0});
    // Ids are local to their session, so the second session's id 1 is another block.
    CHECK(r.requests[2].ids == ids{2});
}

TEST_CASE("WEKA users are merged by arrival, then user, and numbered session by session") {
    kvo::trace::read_options options;
    options.users = 2;
    options.block_tokens = 64;
    const auto r = read_text(weka(R"({"t": 0, "i": 64, "o": 1, "k": 0, "a": [[1, 1]]}
{"t": 9, "i": 128, "o": 2, "k": 1, "a": [[5, 1]]}
)") + weka(R"({"t": 50, "i": 64, "o": 3, "k": 0, "a": [[8, 1]]}
{"t": 51, "i": 64, "o": 4, "k": 1, "a": []}
)"),
                             options);
    REQUIRE(r.error == "");
    REQUIRE(r.requests.size() == 4);
    CHECK(r.requests[0].ids == ids{0});
    CHECK(r.requests[1].ids == ids{2});
    CHECK(r.requests[2].output_tokens == 4);
    CHECK(r.requests[3].ids == ids{0, 1});
}

TEST_CASE("WEKA sub-agents have lists of their own, and lines out of time order are sorted") {
    kvo::trace::read_options options;
    options.users = 1;
    options.block_tokens = 64;
    const auto r = read_text(weka(R"({"t": 0, "i": 128, "o": 1, "k": 0, "a": [[1, 2]]}
{"t": 9, "i": 128, "o": 2, "k": 0, "a": [[40, 2]], "g": [1]}
{"t": 5, "i": 192, "o": 3, "k": 2, "a": [[3, 1]]}
{"t": 12, "i": 64, "o": 4, "k": 1, "a": [], "g": [1]}
)"),
                             options);
    REQUIRE(r.error == "");
    REQUIRE(r.requests.size() == 4);
    CHECK(r.requests[1].output_tokens == 3);
    CHECK(r.requests[1].ids == ids{0, 1, 2});
    CHECK(r.requests[2].ids == ids{3, 4});
    CHECK(r.requests[3].ids == ids{3});
}

TEST_CASE("WEKA blocks are coarsened to 512 tokens unless asked otherwise") {
    const std::string text = weka(R"({"t": 0, "i": 1100, "o": 1, "k": 0, "a": [[1, 17]]})");
    const auto r = read_text(text);
    REQUIRE(r.error == "");
    CHECK(r.info.block_tokens == 512);
    CHECK(r.requests[0].ids == ids{0, 1});
    CHECK(read_text(text, 64).requests[0].ids.size() == 17);
    CHECK_THAT(read_text(text, 100).error, contains(":1: ") && contains("do not divide"));
}

TEST_CASE("WEKA lines without a session or with impossible times are refused") {
    const std::string request = R"({"t": 0, "i": 64, "o": 1, "k": 0, "a": [[1, 1]]})";
    kvo::trace::read_options options;
    options.kind = format::weka;
    CHECK_THAT(read_text(request, options).error,
               contains(":1: a request before the first session"));
    CHECK_THAT(read_text(weka(R"({"t": 1e300, "i": 64, "k": 0, "a": [[1, 1]]})")).error,
               contains(":2: t is 1e+300"));
    CHECK_THAT(read_text(R"({"trace": "x", "block": 0})").error, contains("blocks of 0 tokens"));
    CHECK_THAT(read_text(weka("")).error, contains("no requests in it"));
}

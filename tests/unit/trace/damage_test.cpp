// Cut and altered traces of every format: each must end, either read or refused with a place and a
// reason. Seeded; single-threaded.
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "trace_fixture.hpp"

using namespace kvo::test;

namespace {

const std::vector<std::string>& samples() {
    static const std::vector<std::string> all = {
        R"({"timestamp": 0, "input_length": 1000, "output_length": 7, "hash_ids": [70, 12]}
{"timestamp": 3, "input_length": 1025, "output_length": 0, "hash_ids": [70, 5, 12]}
)",
        R"({"ts": 0, "il": 3000, "ol": 0, "bh": ["9222992796114690886", "3"]}
{"ts": 56, "il": 93, "ol": 4, "bh": []}
)",
        R"({"timestamp":0,"session":0,"input_bytes":200,"output_bytes":9,"k":0,"a":[[10,4]]}
{"timestamp":5,"session":0,"input_bytes":192,"output_bytes":0,"k":2,"a":[[50,1]]}
)",
        R"({"trace":"t1","block":64,"models":["m"]}
{"t":0.0,"i":1100,"o":1,"k":0,"a":[[1,17]],"api":7.34}
{"t":2.5,"i":1200,"o":1,"k":16,"a":[[40,2]],"g":[1]}
)",
        "# time,key\n0,A\n1,B\n2,A\n"};
    return all;
}

// Ends that are acceptable: read, or refused with a text. Reaching this line is most of the check.
void must_end(const std::string& text) {
    const auto r = read_text(text);
    if (r.error.empty()) {
        CHECK(r.info.requests == r.requests.size());
        CHECK(r.info.requests > 0);
    } else {
        CHECK(r.error.front() == ':');
    }
}

}  // namespace

TEST_CASE("A trace cut anywhere is read up to there or refused") {
    for (const std::string& sample : samples()) {
        for (size_t size = 0; size <= sample.size(); ++size) must_end(sample.substr(0, size));
    }
}

TEST_CASE("A trace with altered bytes is read or refused") {
    std::mt19937_64 random(seed());
    constexpr std::string_view alphabet = "0123456789-+.eE,:[]{}\"\n nul\\\xff";
    for (int round = 0; round < 3000; ++round) {
        std::string text = samples()[random() % samples().size()];
        for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
            const size_t at = random() % text.size();
            const char byte = alphabet[random() % alphabet.size()];
            switch (random() % 3) {
                case 0:
                    text[at] = byte;
                    break;
                case 1:
                    text.insert(at, 1, byte);
                    break;
                default:
                    text.erase(at, 1);
            }
        }
        CAPTURE(round, text);
        must_end(text);
    }
}

TEST_CASE("Deeply nested JSON is refused without using up the stack") {
    const std::string deep(1 << 20, '[');
    CHECK(read_text("{\"hash_ids\": " + deep).error != "");
    CHECK(read_text("{\"hash_ids\": " + deep + std::string(1 << 20, ']') + "}").error != "");
}

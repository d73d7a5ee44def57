// The main() of every Catch2 test executable. It prints the seed of the randomised tests first, so
// that a failing log is enough to repeat the run, and returns 0 (passed), 1 (failed) or 77 (every
// case that ran was skipped), whatever the version of Catch2. Single-threaded.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "support/seed.hpp"

// Version 2 puts its implementation into the file that asks for it; version 3 is a library.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

struct {
    bool skipped_now = false;
    int cases = 0;
    int skipped = 0;
} counts;

struct skip_counter : listener_base {
    using listener_base::listener_base;

    void testCaseStarting(const Catch::TestCaseInfo&) override { counts.skipped_now = false; }
    void testCaseEnded(const Catch::TestCaseStats&) override {
        ++counts.cases;
        if (counts.skipped_now) ++counts.skipped;
    }
};
CATCH_REGISTER_LISTENER(skip_counter)

constexpr int kExitSkipped = 77;

}  // namespace

namespace kvo::test {

void note_skip() { counts.skipped_now = true; }

std::uint64_t seed() {
    const char* text = std::getenv("KVO_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : 1;
}

}  // namespace kvo::test

int main(int argc, char** argv) {
    std::printf("KVO_TEST_SEED=%" PRIu64 "\n", kvo::test::seed());
    std::fflush(stdout);
    if (Catch::Session().run(argc, argv) != 0) return 1;
    return counts.cases > 0 && counts.skipped == counts.cases ? kExitSkipped : 0;
}

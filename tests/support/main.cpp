// The main() of every Catch2 test executable. It prints the seed of the randomised tests first, so
// that a failing log is enough to repeat the run. Single-threaded.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "support/seed.hpp"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace kvo::test {

std::uint64_t seed() {
    const char* text = std::getenv("KVO_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : 1;
}

}  // namespace kvo::test

int main(int argc, char** argv) {
    std::printf("KVO_TEST_SEED=%" PRIu64 "\n", kvo::test::seed());
    std::fflush(stdout);
    return Catch::Session().run(argc, argv);
}

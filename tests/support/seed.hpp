// The seed of randomised tests. It is fixed unless KVO_TEST_SEED is set, and the test main prints
// it, so that any failure can be run again. Reading it is thread-safe.
#pragma once

#include <cstdint>

namespace kvo::test {

// KVO_TEST_SEED as a decimal or 0x number, else 1.
std::uint64_t seed();

}  // namespace kvo::test

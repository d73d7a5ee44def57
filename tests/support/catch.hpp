// Catch2 under one name: version 2 (one header, Debian 12) and version 3 (several headers, Debian
// 13) differ in their include paths, a matcher and in how a case is skipped. Include this and
// nothing else of Catch2. Assertions are not thread-safe in either version: check on the main
// thread only.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace kvo::test {

// The matcher of a text that has `part` in it: CHECK_THAT(text, contains("reason")).
#if __has_include(<catch2/catch_all.hpp>)
inline auto contains(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#else
inline auto contains(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif

// The running case cannot be done here. When that is so for every case that ran, the executable
// ends with the exit code that ctest shows as skipped.
void note_skip();

}  // namespace kvo::test

// Ends the test case with a visible note. Version 3 has a macro of its own for that, but version 2
// has none, and what a run of skipped cases returns differs between versions.
#define KVO_SKIP(reason)             \
    do {                             \
        kvo::test::note_skip();      \
        WARN("skipped: " << reason); \
        return;                      \
    } while (false)

#include "memory/host_pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "support/catch.hpp"

using namespace kvo;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::unique_ptr<host_pool> make_pool(uint64_t reserve = 64 * kMiB, uint64_t chunk = 16 * kMiB) {
    std::unique_ptr<host_pool> pool;
    host_pool_config config;
    config.reserve_bytes = reserve;
    config.chunk_bytes = chunk;
    config.prefault_threads = 2;
    REQUIRE(host_pool::create(config, &pool) == KVO_OK);
    return pool;
}

}  // namespace

TEST_CASE("a pool touches exactly what it is asked to, in whole pages, and gives it back") {
    auto pool = make_pool();
    CHECK(pool->n_chunks() == 4);
    CHECK(pool->touched_bytes() == 0);
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    REQUIRE(pool->populate(0, 5 * page - 1) == KVO_OK);
    CHECK(pool->touched_bytes() == 5 * page);
    std::memset(pool->base(), 7, 5 * page);
    REQUIRE(pool->populate(0, 16 * kMiB) == KVO_OK);
    CHECK(pool->base()[5 * page - 1] == 7);  // contents stay
    REQUIRE(pool->populate(3, 16 * kMiB) == KVO_OK);
    CHECK(pool->touched_bytes() == 32 * kMiB);
    REQUIRE(pool->release(3, 0) == KVO_OK);
    REQUIRE(pool->release(0, page) == KVO_OK);
    CHECK(pool->touched_bytes() == page);
    REQUIRE(pool->populate(3, kMiB) == KVO_OK);
    CHECK(pool->base()[48 * kMiB] == 0);  // fresh pages
}

TEST_CASE("more than the machine has is refused with the numbers and nothing is touched") {
    // Twice the machine and no more: ThreadSanitizer leaves little address space to reserve.
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t twice = 2 * page * static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
    auto pool = make_pool(twice, twice);
    CHECK(pool->populate(0, twice) == KVO_E_BUDGET);
    CHECK_THAT(error_text(), kvo::test::contains(std::to_string(twice)));
    CHECK(pool->touched_bytes() == 0);
}

TEST_CASE("a forked child does not have the pool") {
    auto pool = make_pool();
    REQUIRE(pool->populate(0, kMiB) == KVO_OK);
    const pid_t child = fork();
    if (child == 0) {
        // write() answers EFAULT for memory that is not there, without a signal.
        int ends[2];
        if (pipe(ends) != 0) _exit(2);
        _exit(write(ends[1], pool->base(), 16) < 0 ? 0 : 1);
    }
    int result = -1;
    REQUIRE(waitpid(child, &result, 0) == child);
    CHECK(WIFEXITED(result));
    CHECK(WEXITSTATUS(result) == 0);
}

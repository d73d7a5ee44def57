#include "serve/block_pool.hpp"

#include <numeric>

#include "support/catch.hpp"

using engine::block_pool;

namespace {

std::vector<uint32_t> numbers(uint32_t first, uint32_t n) {
    std::vector<uint32_t> v(n);
    std::iota(v.begin(), v.end(), first);
    return v;
}

// Takes blocks for whole blocks of `tokens`, publishes and releases them.
std::vector<uint32_t> fill(block_pool& pool, const std::vector<uint32_t>& tokens, uint32_t bt) {
    auto blocks = *pool.allocate(static_cast<uint32_t>(tokens.size()) / bt);
    uint64_t chain = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
        chain = pool.publish(blocks[i], chain, std::span(tokens).subspan(i * bt, bt));
    }
    pool.release(blocks);
    return blocks;
}

}  // namespace

TEST_CASE("a released prefix is found again and always leaves one token to compute") {
    block_pool pool(8, 4, true);
    const auto tokens = numbers(100, 12);
    const auto blocks = fill(pool, tokens, 4);
    CHECK(pool.match(tokens).blocks == std::vector<uint32_t>(blocks.begin(), blocks.begin() + 2));
    auto longer = tokens;
    longer.push_back(1);
    CHECK(pool.match(longer).blocks == blocks);
    longer[5] = 7;  // inside the second block
    CHECK(pool.match(longer).blocks.size() == 1);
}

TEST_CASE("the tail of an unused prefix leaves before its head") {
    block_pool pool(4, 4, true);
    const auto tokens = numbers(0, 16);
    const auto blocks = fill(pool, tokens, 4);
    const auto taken = pool.allocate(2);
    REQUIRE(taken.has_value());
    CHECK((*taken)[0] == blocks[3]);
    CHECK((*taken)[1] == blocks[2]);
    auto longer = tokens;
    longer.push_back(1);
    CHECK(pool.match(longer).blocks == std::vector<uint32_t>{blocks[0], blocks[1]});
}

TEST_CASE("blocks in use are never handed out, and a refusal changes nothing") {
    block_pool pool(4, 4, true);
    const auto held = *pool.allocate(3);
    CHECK_FALSE(pool.allocate(2).has_value());
    CHECK(pool.n_available() == 1);
    pool.release(held);
    CHECK(pool.n_available() == 4);
}

TEST_CASE("without reuse nothing is ever found") {
    block_pool pool(4, 4, false);
    const auto tokens = numbers(0, 13);
    fill(pool, numbers(0, 12), 4);
    CHECK(pool.match(tokens).blocks.empty());
}

TEST_CASE("forget drops prefixes but not blocks in use") {
    block_pool pool(4, 4, true);
    const auto tokens = numbers(0, 9);
    fill(pool, numbers(0, 8), 4);
    const auto held = pool.match(tokens);
    CHECK(held.blocks.size() == 2);
    pool.forget();
    CHECK(pool.match(tokens).blocks.empty());
    CHECK(pool.n_available() == 2);
    pool.release(held.blocks);
    CHECK(pool.n_available() == 4);
}

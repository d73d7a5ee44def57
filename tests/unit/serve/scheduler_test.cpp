#include <random>

#include "fake_model.hpp"
#include "serve/report.hpp"
#include "serve/run.hpp"
#include "support/catch.hpp"

using namespace engine;
using engine_test::fake_model;

namespace {

constexpr uint32_t kVocab = 97;

schedule random_schedule(uint64_t seed, uint32_t block_tokens) {
    std::mt19937_64 random(seed);
    schedule plan{"random", {}};
    uint64_t number = 0;
    for (int u = 0; u < 4; ++u) {
        auto& user = plan.users.emplace_back();
        for (int i = 0; i < 6; ++i) {
            request_spec r;
            const uint64_t root = random() % 5;
            const uint64_t n_blocks = 1 + random() % 6;
            for (uint64_t b = 0; b < n_blocks; ++b) {
                const auto part = tokens_of_block(root * 100 + b, block_tokens, kVocab);
                r.prompt.insert(r.prompt.end(), part.begin(), part.end());
            }
            const auto tail = tokens_of_block(1000 + ++number, 1 + static_cast<uint32_t>(random() % 5), kVocab);
            r.prompt.insert(r.prompt.end(), tail.begin(), tail.end());
            r.max_answer = 1 + static_cast<uint32_t>(random() % 12);
            user.push_back(r);
        }
    }
    return plan;
}

run_result run_once(const schedule& plan, uint32_t n_blocks, bool reuse, scheduler_config config) {
    fake_model model(n_blocks, config.block_tokens, kVocab);
    block_pool pool(n_blocks, config.block_tokens, reuse);
    auto tier = make_no_tier();
    run_result result;
    std::string error;
    INFO(error);
    REQUIRE(run_schedule("run", plan, config, pool, *tier, model.function(), &result, &error));
    CHECK(pool.n_available() == n_blocks);
    return result;
}

}  // namespace

TEST_CASE("answers do not depend on pool size, chunk size, batch size or reuse") {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        const auto plan = random_schedule(seed, 4);
        std::vector<run_result> runs;
        runs.push_back(run_once(plan, 200, false, {4, 1, 1000, UINT32_MAX}));
        runs.push_back(run_once(plan, 200, true, {4, 8, 5, UINT32_MAX}));
        runs.push_back(run_once(plan, 12, true, {4, 4, 7, UINT32_MAX}));
        runs.push_back(run_once(plan, 11, false, {4, 8, 64, UINT32_MAX}));
        CHECK(first_difference(runs).empty());
        CHECK(runs[1].counts.reused_device_tokens > 0);
    }
}

TEST_CASE("a small pool forces preemption and every request still gets its answer") {
    uint64_t preemptions = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
        const auto plan = random_schedule(seed, 4);
        const auto run = run_once(plan, 12, true, {4, 8, 16, UINT32_MAX});
        preemptions += run.counts.preemptions;
        CHECK(run.answers.size() == plan.n_requests());
        for (const auto& answer : run.answers) CHECK_FALSE(answer.empty());
    }
    CHECK(preemptions > 10);
}

TEST_CASE("computed and reused tokens add up to all prompt tokens when nothing was preempted") {
    const auto plan = random_schedule(3, 4);
    const auto run = run_once(plan, 300, true, {4, 8, 16, UINT32_MAX});
    REQUIRE(run.counts.preemptions == 0);
    CHECK(run.counts.prefilled_tokens + run.counts.reused_device_tokens == run.prompt_tokens);
}

TEST_CASE("a request that can never fit is refused with numbers") {
    schedule plan{"big", {{request_spec{std::vector<uint32_t>(50, 1), 1, false, ""}}}};
    fake_model model(4, 4, kVocab);
    block_pool pool(4, 4, true);
    auto tier = make_no_tier();
    run_result result;
    std::string error;
    CHECK_FALSE(run_schedule("run", plan, {4, 8, 64, UINT32_MAX}, pool, *tier, model.function(), &result, &error));
    CHECK(error.find("50 prompt tokens") != std::string::npos);
}

TEST_CASE("the comparison names the first difference") {
    run_result a, b;
    a.name = "one";
    b.name = "two";
    a.answers = {{1, 2, 3}, {4, 5}};
    b.answers = {{1, 2, 3}, {4, 6}};
    CHECK(first_difference({a, a}).empty());
    CHECK(first_difference({a, b}).find("request 1") != std::string::npos);
    b.answers = {{1, 2}, {4, 5}};
    CHECK(first_difference({a, b}).find("request 0") != std::string::npos);
    b.answers.pop_back();
    CHECK(first_difference({a, b}).find("gave 1 answers") != std::string::npos);
}

TEST_CASE("percentiles are values that were measured") {
    CHECK(percentile({3, 1, 2, 4}, 0.5) == 2);
    CHECK(percentile({3, 1, 2, 4}, 0.95) == 4);
    CHECK(percentile({7}, 0.5) == 7);
    CHECK(percentile({}, 0.5) == 0);
}

// Random schedules of a whole engine: never a wrong byte, and everything is given back.
#include <cstring>

#include "model_engine.hpp"
#include "sequence/block_key.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

// Seven keys for everything.
void few_keys(void*, const block_identity&, kvo_key_t* key) {
    const auto small = static_cast<uint8_t>(key->bytes[0] % 7);
    *key = kvo_key_t{};
    key->bytes[5] = small;
}

struct sums {
    uint64_t reused = 0, failed = 0, forks = 0, preempted = 0, rewound = 0, audited = 0;
};

void run(rig_setup setup, model_engine::chances chances, int n_rounds, int n_steps, sums* sum) {
    for (int round = 0; round < n_rounds; ++round) {
        const uint64_t seed = test::seed() + static_cast<uint64_t>(round) * 1000;
        INFO("round " << round);
        setup.seed = seed;
        seq_rig rig(setup);
        model_engine engine(rig, seed, chances);
        for (int i = 0; i < n_steps; ++i) {
            engine.step();
            if (i % 40 == 39) engine.check();
        }
        engine.end_all();
        REQUIRE(rig.left_over() == "");
        sum->reused += engine.n_reused;
        sum->failed += engine.n_failed_loads;
        sum->forks += engine.n_forks;
        sum->preempted += engine.n_preempted;
        sum->rewound += engine.n_rewound;
        sum->audited += engine.n_audited;
    }
}

}  // namespace

TEST_CASE("Random schedules never see a wrong byte") {
    sums sum;
    rig_setup setup;
    setup.blocks = 30;
    setup.n_device_blocks = 76;
    run(setup, {}, 4, 600, &sum);
    // The schedules reach what they are meant to reach.
    CHECK(sum.reused > 1000);
    CHECK(sum.forks > 10);
    CHECK(sum.preempted > 10);
    CHECK(sum.rewound > 50);
    CHECK(sum.audited > 1000);
    CHECK(sum.failed > 0);  // cancelled ones
}

TEST_CASE("Random schedules with faults and resets never see a wrong byte") {
    sums sum;
    rig_setup setup;
    setup.blocks = 40;
    setup.n_device_blocks = 76;
    run(setup, {true, true}, 4, 600, &sum);
    CHECK(sum.failed > 2);
    CHECK(sum.reused > 500);
    CHECK(sum.audited > 500);
}

TEST_CASE("Random schedules over small device blocks and a late group never see a wrong byte") {
    sums sum;
    rig_setup setup;
    setup.blocks = 40;
    setup.ratio = 4;
    setup.n_device_blocks = 300;
    setup.second_group_lag = 2;
    run(setup, {true, false}, 2, 500, &sum);
    CHECK(sum.reused > 200);
}

TEST_CASE("Random schedules in which nearly all keys collide never see a wrong byte") {
    sums sum;
    rig_setup setup;
    setup.blocks = 40;
    setup.n_device_blocks = 76;
    setup.weaken.change = few_keys;
    run(setup, {true, true}, 2, 500, &sum);
    CHECK(sum.audited > 0);
}

#include <random>

#include "rig.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

TEST_CASE("a copy that fails names its block; those before are done, those behind are not continued") {
    rig_config c;
    c.n_parts = 4;
    rig r(c);
    for (uint32_t s = 0; s < 4; ++s) r.fill_slot(s, static_cast<uint8_t>(s + 1));
    r.device.fail_batch = 0;
    r.device.fail_batch_after = 10;  // block 2, part 2 of 4 x 4
    const auto op = r.submit(KVO_OP_LOAD, {{0, 10}, {1, 11}, {2, 12}, {3, 13}}, KVO_STREAM_IDLE);
    r.settle();
    const auto done = r.completion(op);
    CHECK(done.status == KVO_E_TRANSFER);
    CHECK(done.n_done == 2);
    CHECK(done.first_bad == 2);
    CHECK(done.n_blocks == 4);
    REQUIRE(r.over[1].size() == 4);
    CHECK(r.over[1][2].result == KVO_E_TRANSFER);
    CHECK(r.over[1][3].result == KVO_E_DROPPED);
    CHECK(r.device_has(10, 1));
    CHECK(r.device_has(11, 2));
    CHECK(r.device.idle());  // no late copy can touch the next owner of these blocks
    CHECK(r.counts().fence_entries == 0);
}

TEST_CASE("wherever a load or a store fails, it completes once and what it calls done is done") {
    for (kvo_op_kind_t kind : {KVO_OP_LOAD, KVO_OP_STORE}) {
        for (uint64_t call = 0; call < 4; ++call) {
            for (uint32_t after = 0; after < 8; ++after) {
                rig_config c;
                c.n_parts = 2;
                c.transfer.window_bytes = 2048;  // four blocks a slice
                rig r(c);
                std::vector<rig::one_block> blocks;
                for (uint32_t i = 0; i < 12; ++i) {
                    r.fill_slot(i, static_cast<uint8_t>(kind == KVO_OP_LOAD ? i + 1 : 0));
                    r.fill_device(i, static_cast<uint8_t>(kind == KVO_OP_STORE ? i + 1 : 0));
                    blocks.push_back({i, i});
                }
                r.device.fail_batch = call;
                r.device.fail_batch_after = after;
                const auto op = r.submit(kind, blocks, KVO_STREAM_IDLE);
                r.settle();
                const auto done = r.completion(op);
                INFO("kind " << kind << " call " << call << " after " << after);
                CHECK(r.ended[1].size() == 1);
                CHECK(r.over[1].size() == 12);
                uint32_t n_ok = 0, first_bad = 12;
                for (const auto& b : r.over[1]) {
                    const bool right = kind == KVO_OP_LOAD
                                           ? r.device_has(b.ordinal, static_cast<uint8_t>(b.ordinal + 1))
                                           : r.slot_has(b.ordinal, static_cast<uint8_t>(b.ordinal + 1));
                    if (b.result == KVO_OK) {
                        ++n_ok;
                        CHECK(right);
                    } else {
                        first_bad = std::min(first_bad, b.ordinal);
                    }
                }
                CHECK(done.n_done == n_ok);
                CHECK(done.first_bad == first_bad);
                CHECK(r.counts().fence_entries == 0);
            }
        }
    }
}

TEST_CASE("an error told by the event condemns the slice and nothing else") {
    rig_config c;
    c.transfer.window_bytes = 512;  // two blocks a slice
    rig r(c);
    r.device.fail_execution = 2;
    const auto op = r.submit(KVO_OP_STORE, {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}, KVO_STREAM_IDLE);
    r.settle();
    const auto done = r.completion(op);
    CHECK(done.status == KVO_E_TRANSFER);
    CHECK(done.n_done == 4);
    CHECK(done.first_bad == 2);
}

TEST_CASE("an event that can't be recorded at first delays the slice but loses nothing") {
    rig r;
    r.fill_device(1, 33);
    r.device.fail_record = 0;
    const auto op = r.submit(KVO_OP_STORE, {{1, 1}}, KVO_STREAM_IDLE);
    r.settle();
    CHECK(r.completion(op).status == KVO_OK);
    CHECK(r.slot_has(1, 33));
}

TEST_CASE("after device loss every op completes once and the records are free again") {
    for (int moment = 0; moment < 4; ++moment) {
        rig_config c;
        c.transfer.window_bytes = 256;
        rig r(c);
        void* stream = r.device.make_stream();
        std::vector<kvo_op_t> all;
        all.push_back(r.submit(KVO_OP_STORE, {{0, 0}, {1, 1}, {2, 2}}, stream));
        all.push_back(r.submit(KVO_OP_LOAD, {{3, 3}, {4, 4}}, KVO_STREAM_IDLE));
        all.push_back(r.submit(KVO_OP_STORE, {{5, 5}}, KVO_STREAM_IDLE));
        for (int i = 0; i < moment; ++i) {
            r.engine->progress_once();
            r.device.run_stream(stream, 1);
        }
        r.device.lost = true;
        for (int i = 0; i < 10; ++i) r.engine->progress_once();
        for (kvo_op_t op : all) CHECK(r.completion(op).status != KVO_OK);
        CHECK(r.counts().fence_entries == 0);
        CHECK(r.counts().ops_active == 0);
        const std::lock_guard lock(r.mutex);
        op_index op;
        CHECK(r.engine->open({}, &op) == KVO_E_DEVICE_LOST);
    }
}

TEST_CASE("a store is not done before the loads it depends on are, and fails with them") {
    for (bool load_fails : {false, true}) {
        for (bool store_first : {false, true}) {
            rig r;
            void* held = r.device.make_stream();
            r.device.launch(held, [](void*) {}, nullptr);
            const auto load = r.submit(KVO_OP_LOAD, {{0, 0}}, held);
            op_request after;
            after.after = std::span(&load, 1);
            const auto store = r.submit(KVO_OP_STORE, {{1, 1}, {2, 2}}, KVO_STREAM_IDLE, after);
            if (store_first) {
                r.engine->progress_once();
                r.device.run_stream(reinterpret_cast<void*>(uintptr_t{0x101}), 10);
                r.engine->progress_once();
                CHECK(r.over[2].empty());  // copied, but not told
            }
            if (load_fails) r.device.fail_batch = store_first ? 0 : 1;  // the load's copy comes second
            if (load_fails && !store_first) r.device.fail_batch = 1;
            r.settle();
            const auto done = r.completion(store);
            const auto load_done = r.completion(load);
            REQUIRE((load_done.status == KVO_OK) != load_fails);
            CHECK(done.status == (load_fails ? KVO_E_DEPENDENCY : KVO_OK));
            CHECK(done.n_done == (load_fails ? 0u : 2u));
        }
    }
}

TEST_CASE("a failed load is remembered after its completion was taken") {
    rig r;
    r.device.fail_batch = 0;
    const auto load = r.submit(KVO_OP_LOAD, {{0, 0}}, KVO_STREAM_IDLE);
    r.settle();
    CHECK(r.completion(load).status == KVO_E_TRANSFER);
    const auto good = r.submit(KVO_OP_LOAD, {{0, 0}}, KVO_STREAM_IDLE);
    r.settle();
    CHECK(r.completion(good).status == KVO_OK);
    const std::lock_guard lock(r.mutex);
    op_index op;
    op_request request;
    request.after = std::span(&load, 1);
    CHECK(r.engine->open(request, &op) == KVO_E_DEPENDENCY);
    request.after = std::span(&good, 1);
    CHECK(r.engine->open(request, &op) == KVO_OK);
    const kvo_op_t foreign{123456789};
    request.after = std::span(&foreign, 1);
    op_index second;
    CHECK(r.engine->open(request, &second) == KVO_E_HANDLE);
    r.engine->drop(op, KVO_E_CANCELLED);
}

TEST_CASE("the owner may turn a copied block into a failed one") {
    rig r;
    r.veto = KVO_E_DROPPED;
    const auto op = r.submit(KVO_OP_LOAD, {{0, 0}, {1, 1}}, KVO_STREAM_IDLE);
    r.settle();
    const auto done = r.completion(op);
    CHECK(done.status == KVO_E_DROPPED);
    CHECK(done.n_done == 0);
}

#include <random>
#include <set>

#include "rig.hpp"
#include "support/seed.hpp"
#include "transfer/lanes.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

kvo_blocks_t list_of(const std::vector<uint32_t>& ids) {
    return {0, static_cast<uint32_t>(ids.size()), ids.data()};
}

}  // namespace

TEST_CASE("fence DROP withdraws what waits and makes the stream wait for what is queued") {
    rig_config c;
    c.transfer.window_bytes = 256;  // one block a slice, kMainDepth in flight
    rig r(c);
    void* stream = r.device.make_stream();
    for (uint32_t d = 0; d < 4; ++d) r.fill_device(d, static_cast<uint8_t>(d + 1));
    const auto op = r.submit(KVO_OP_STORE, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, KVO_STREAM_IDLE);
    r.engine->progress_once();  // the first kMainDepth blocks are queued
    const std::vector<uint32_t> ids{0, 1, 2, 3, KVO_NO_BLOCK};
    const auto list = list_of(ids);
    CHECK(r.engine->fence(std::span(&list, 1), KVO_STREAM_IDLE, KVO_FENCE_DROP) == KVO_E_NOT_READY);
    CHECK(r.engine->fence(std::span(&list, 1), stream, KVO_FENCE_DROP) == KVO_OK);
    CHECK(r.device.counts.waits == 1);  // all slices are on one stream: the last covers them
    struct overwrite {
        rig* r;
        static void run(void* self) {
            for (uint32_t d = 0; d < 4; ++d) static_cast<overwrite*>(self)->r->fill_device(d, 99);
        }
    } work{&r};
    r.device.launch(stream, overwrite::run, &work);
    r.settle();
    CHECK(r.slot_has(0, 1));
    CHECK(r.slot_has(1, 2));
    const auto done = r.completion(op);
    CHECK(done.n_done == kMainDepth);
    CHECK(done.first_bad == kMainDepth);
    CHECK(done.status == KVO_E_DROPPED);
}

TEST_CASE("fence FINISH queues the rest first") {
    rig_config c;
    c.transfer.window_bytes = 256;
    rig r(c);
    void* stream = r.device.make_stream();
    for (uint32_t d = 0; d < 6; ++d) r.fill_device(d, static_cast<uint8_t>(d + 1));
    const auto op = r.submit(KVO_OP_STORE, {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}, stream);
    const std::vector<uint32_t> ids{5};
    const auto list = list_of(ids);
    CHECK(r.engine->fence(std::span(&list, 1), stream, KVO_FENCE_FINISH) == KVO_OK);
    struct overwrite {
        rig* r;
        static void run(void* self) { static_cast<overwrite*>(self)->r->fill_device(5, 99); }
    } work{&r};
    r.device.launch(stream, overwrite::run, &work);
    r.settle();
    CHECK(r.completion(op).n_done == 6);
    CHECK(r.slot_has(5, 6));
}

TEST_CASE("a fence with nothing in flight makes no device call") {
    rig r;
    const std::vector<uint32_t> ids{1, 2, 3};
    const auto list = list_of(ids);
    CHECK(r.engine->fence(std::span(&list, 1), KVO_STREAM_IDLE, KVO_FENCE_DROP) == KVO_OK);
    CHECK(r.device.counts.waits + r.device.counts.records + r.device.counts.queries == 0);
    const std::vector<uint32_t> wrong{32};
    const auto far = list_of(wrong);
    CHECK(r.engine->fence(std::span(&far, 1), KVO_STREAM_IDLE, KVO_FENCE_DROP) == KVO_E_RANGE);
}

TEST_CASE("wait_stream queues the rest of the op and the stream reads loaded bytes") {
    rig_config c;
    c.transfer.window_bytes = 256;
    rig r(c);
    void* stream = r.device.make_stream();
    r.device.launch(stream, [](void*) {}, nullptr);
    for (uint32_t s = 0; s < 5; ++s) r.fill_slot(s, static_cast<uint8_t>(s + 1));
    const auto op = r.submit(KVO_OP_LOAD, {{0, 10}, {1, 11}, {2, 12}, {3, 13}, {4, 14}}, stream);
    CHECK(r.engine->wait_stream(op, stream, KVO_WAIT_TRY) == KVO_E_NOT_QUEUED);
    REQUIRE(r.engine->wait_stream(op, stream, 0) == KVO_OK);
    struct check {
        rig* r;
        bool ok = false;
        static void run(void* self) {
            auto* c = static_cast<check*>(self);
            c->ok = true;
            for (uint32_t i = 0; i < 5; ++i) {
                c->ok = c->ok && c->r->device_has(10 + i, static_cast<uint8_t>(i + 1));
            }
        }
    } reader{&r};
    r.device.launch(stream, check::run, &reader);
    r.settle();
    CHECK(reader.ok);
    CHECK(r.completion(op).n_done == 5);
    CHECK(r.engine->wait_stream(op, stream, 0) == KVO_OK);  // over and taken: nothing to wait for
    CHECK(r.engine->wait_stream(kvo_op_t{1u << 30}, stream, 0) == KVO_E_HANDLE);
}

TEST_CASE("cancel and deadline stop only what is not queued, and the completion still comes once") {
    for (bool by_deadline : {false, true}) {
        rig_config c;
        c.transfer.window_bytes = 256;
        rig r(c);
        op_request request;
        request.deadline_ns = by_deadline ? 50'000 : 0;
        const auto op = r.submit(KVO_OP_LOAD, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, KVO_STREAM_IDLE, request);
        r.engine->progress_once();
        if (by_deadline) {
            r.device.now_ns += 60'000;
        } else {
            const std::lock_guard lock(r.mutex);
            CHECK(r.engine->cancel(op, KVO_E_CANCELLED) == KVO_OK);
        }
        r.settle();
        const auto done = r.completion(op);
        CHECK(done.status == (by_deadline ? KVO_E_DEADLINE : KVO_E_CANCELLED));
        CHECK(done.n_done == kMainDepth);
        CHECK(done.first_bad == kMainDepth);
        CHECK_FALSE(r.is_over(op));  // taken once
    }
}

TEST_CASE("cancelling an op whose stream is stalled ends it at once") {
    rig r;
    void* stalled = r.device.make_stream();
    r.device.launch(stalled, [](void*) {}, nullptr);
    const auto op = r.submit(KVO_OP_STORE, {{0, 0}}, stalled);
    {
        const std::lock_guard lock(r.mutex);
        CHECK(r.engine->cancel(op, KVO_E_CANCELLED) == KVO_OK);
    }
    CHECK(r.completion(op).status == KVO_E_CANCELLED);
}

TEST_CASE("a device block is the target of at most one load") {
    rig r;
    r.submit(KVO_OP_LOAD, {{0, 7}}, KVO_STREAM_IDLE);
    const std::lock_guard lock(r.mutex);
    op_index op;
    op_request request;
    request.kind = KVO_OP_LOAD;
    REQUIRE(r.engine->open(request, &op) == KVO_OK);
    const uint32_t id = 7;
    const transfer_engine::group_piece piece{slot_id{1}, std::span(&id, 1)};
    CHECK(r.engine->add_block(op, {}, std::span(&piece, 1)) == KVO_E_BUSY);
    CHECK(std::string(error_text()).find("device block 7") != std::string::npos);
    r.engine->drop(op, KVO_E_CANCELLED);
}

TEST_CASE("records that run out are a refusal that leaves nothing behind") {
    rig_config c;
    c.transfer.max_ops = 2;
    c.transfer.max_inflight_blocks = 3;
    rig r(c);
    r.submit(KVO_OP_STORE, {{0, 0}, {1, 1}}, KVO_STREAM_IDLE);
    {
        const std::lock_guard lock(r.mutex);
        op_index a, b;
        op_request request;
        request.kind = KVO_OP_STORE;
        REQUIRE(r.engine->open(request, &a) == KVO_OK);
        CHECK(r.engine->open(request, &b) == KVO_E_OPS_FULL);
        const uint32_t id = 7;
        const transfer_engine::group_piece piece{slot_id{1}, std::span(&id, 1)};
        CHECK(r.engine->add_block(a, {}, std::span(&piece, 1)) == KVO_OK);
        CHECK(r.engine->add_block(a, {}, std::span(&piece, 1)) == KVO_E_OPS_FULL);
        r.engine->drop(a, KVO_E_CANCELLED);
    }
    r.settle();
    kvo_completion_t c2{};
    const std::lock_guard lock(r.mutex);
    CHECK(r.engine->take(&c2, 1) == 1);
    op_index a, b;
    CHECK(r.engine->open({}, &a) == KVO_OK);
    CHECK(r.engine->open({}, &b) == KVO_OK);
    r.engine->drop(a, KVO_E_CANCELLED);
    r.engine->drop(b, KVO_E_CANCELLED);
}

TEST_CASE("an empty op completes at once, a purge when it is told") {
    rig r;
    const auto empty = r.submit(KVO_OP_STORE, {}, r.device.make_stream());
    CHECK(r.completion(empty).status == KVO_OK);
    op_request request;
    request.kind = KVO_OP_PURGE;
    const op_index op = r.open(request, {});
    kvo_op_t id{};
    REQUIRE(r.engine->submit(op, KVO_STREAM_IDLE, &id) == KVO_OK);
    CHECK_FALSE(r.is_over(id));
    {
        const std::lock_guard lock(r.mutex);
        r.engine->finish_external(op, KVO_OK);
    }
    CHECK(r.completion(id).kind == KVO_OP_PURGE);
}

TEST_CASE("random schedules: one completion an op, right bytes, nothing left over") {
    for (uint64_t k = 0; k < 150; ++k) {
        const uint64_t seed_now = seed() * 1000 + k;
        INFO("seed " << seed_now);
        std::mt19937_64 random(seed_now);
        rig_config c;
        c.seed = seed_now;
        c.n_parts = static_cast<uint32_t>(1 + random() % 3);
        c.rows = static_cast<uint32_t>(1 + random() % 2);
        c.row_bytes = 32;
        c.transfer.window_bytes = 64 << random() % 6;
        rig r(c);
        void* streams[] = {r.device.make_stream(), r.device.make_stream(), KVO_STREAM_IDLE};
        for (uint32_t s = 0; s < 32; ++s) r.fill_slot(s, static_cast<uint8_t>(s));
        std::map<uint64_t, kvo_op_t> live;
        std::set<uint32_t> busy;  // device blocks that some load writes
        for (int step = 0; step < 120; ++step) {
            const uint64_t what = random() % 10;
            if (what < 3 && live.size() < 20) {  // slots 0..31 are only read, device blocks 0..15 written
                std::vector<rig::one_block> blocks;
                for (uint32_t d = 0; d < 16 && blocks.size() < 1 + random() % 6; ++d) {
                    if (busy.count(d) == 0 && random() % 3 == 0) blocks.push_back({static_cast<uint32_t>(random() % 32), d});
                }
                for (const auto& b : blocks) busy.insert(b.device_block);
                const auto op = r.submit(KVO_OP_LOAD, blocks, streams[random() % 3]);
                live[r.last_tag] = op;
            } else if (what < 5 && live.size() < 20) {  // device blocks 16..31 are only read
                const auto op = r.submit(KVO_OP_STORE, {{static_cast<uint32_t>(32 + random() % 32), static_cast<uint32_t>(16 + random() % 16)}}, streams[random() % 3]);
                live[r.last_tag] = op;
            } else if (what == 5 && !live.empty()) {
                const std::lock_guard lock(r.mutex);
                CHECK(r.engine->cancel(live.begin()->second, KVO_E_CANCELLED) == KVO_OK);
            } else if (what == 6 && !live.empty()) {
                const status s = r.engine->wait_stream(live.begin()->second, streams[random() % 2], 0);
                CHECK((s == KVO_OK || s == KVO_E_CANCELLED || s == KVO_E_DROPPED));
            } else if (what == 7) {
                const std::vector<uint32_t> ids{static_cast<uint32_t>(random() % 32)};
                const auto list = list_of(ids);
                CHECK(r.engine->fence(std::span(&list, 1), streams[random() % 2],
                                      random() % 2 == 0 ? KVO_FENCE_DROP : KVO_FENCE_FINISH) == KVO_OK);
            } else {
                r.engine->progress_once();
                if (random() % 2 == 0) r.device.run();
            }
            kvo_completion_t done{};
            const std::lock_guard lock(r.mutex);
            while (r.engine->take(&done, 1) == 1) {
                for (auto it = live.begin(); it != live.end();) {
                    if (it->second.value != done.op.value) {
                        ++it;
                        continue;
                    }
                    CHECK(r.ended[it->first].size() == 1);
                    it = live.erase(it);
                }
                busy.clear();
                if (!live.empty()) {
                    for (uint32_t d = 0; d < 16; ++d) busy.insert(d);  // cautious: only when all is over
                }
            }
        }
        r.settle();
        const auto counts = r.counts();
        CHECK(counts.ops_active == 0);
        CHECK(counts.fence_entries == 0);
        CHECK(r.device.counts.largest_batch <= 64);
        for (const auto& [tag, ended] : r.ended) CHECK(ended.size() == 1);
    }
}

#include "rig.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

struct fill_later {
    rig* r;
    uint32_t device_block;
    uint8_t key;
    static void run(void* self) {
        const auto* f = static_cast<fill_later*>(self);
        f->r->fill_device(f->device_block, f->key);
    }
};

}  // namespace

TEST_CASE("a store reads what the caller's stream wrote before it, a load waits for its readers") {
    rig r;
    void* stream = r.device.make_stream();
    fill_later write{&r, 3, 40};
    r.device.launch(stream, fill_later::run, &write);
    const auto store = r.submit(KVO_OP_STORE, {{5, 3}}, stream);
    r.engine->progress_once();
    CHECK(r.device.counts.batches == 0);  // the gate has not fired
    r.settle();
    CHECK(r.slot_has(5, 40));
    CHECK(r.completion(store).status == KVO_OK);
    r.fill_device(3, 90);
    const auto load = r.submit(KVO_OP_LOAD, {{5, 3}}, stream);
    r.settle();
    CHECK(r.completion(load).n_done == 1);
    CHECK(r.device_has(3, 40));
}

TEST_CASE("an op behind a stalled stream delays no other") {
    rig r;
    void* stalled = r.device.make_stream();
    void* other = r.device.make_stream();
    struct nothing {
        static void run(void*) {}
    };
    r.device.launch(stalled, nothing::run, nullptr);
    const auto late = r.submit(KVO_OP_STORE, {{0, 0}}, stalled);
    r.fill_device(1, 11);
    const auto early = r.submit(KVO_OP_STORE, {{1, 1}}, other);
    r.device.run_stream(other, 10);
    r.engine->progress_once();
    // The library's streams come first by number: load, store, side load, side store.
    r.device.run_stream(reinterpret_cast<void*>(uintptr_t{0x101}), 10);
    r.engine->progress_once();
    CHECK(r.is_over(early));
    CHECK_FALSE(r.is_over(late));
    r.settle();
    CHECK(r.is_over(late));
}

TEST_CASE("strided parts and several device blocks to a host block land byte for byte") {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        rig_config c;
        c.n_parts = 3;
        c.rows = 4;
        c.row_bytes = 48;
        c.seed = seed;
        rig r(c);
        for (uint32_t d = 0; d < 8; ++d) r.fill_device(d, static_cast<uint8_t>(20 * d));
        std::vector<rig::one_block> blocks, back;
        for (uint32_t d = 0; d < 8; ++d) blocks.push_back({60 - d, d});
        r.submit(KVO_OP_STORE, blocks, KVO_STREAM_IDLE);
        r.settle();
        for (uint32_t d = 0; d < 8; ++d) {
            CHECK(r.slot_has(60 - d, static_cast<uint8_t>(20 * d)));
            back.push_back({60 - d, 20 + d});
        }
        r.submit(KVO_OP_LOAD, back, KVO_STREAM_IDLE);
        r.settle();
        for (uint32_t d = 0; d < 8; ++d) CHECK(r.device_has(20 + d, static_cast<uint8_t>(20 * d)));
        CHECK(r.device.counts.largest_batch <= 64);
        CHECK(r.counts().fence_entries == 0);
    }
}

TEST_CASE("neighbours on both sides become one copy") {
    rig_config c;
    rig r(c);
    // Plain blocks without gaps: the rig's canaries would forbid merging, so build a dense layout.
    std::vector<uint8_t> device(32 * 256, 9), slots(32 * 256, 0);
    const kvo_part_t part{device.data(), 256, 256, 0, 1, 0};
    const group_layout layout{std::span(&part, 1), 32, 1, 256};
    struct places final : transfer_engine::address_source {
        std::vector<uint8_t>* slots;
        uint8_t* slot_address(uint32_t, slot_id s) const override { return slots->data() + raw(s) * 256; }
    } addresses;
    addresses.slots = &slots;
    std::unique_ptr<transfer_engine> dense;
    REQUIRE(transfer_engine::create({}, std::span(&layout, 1), r.device.table(), r.device.clock(), r.mutex,
                                    addresses, r, &dense) == KVO_OK);
    std::swap(dense, r.engine);
    std::vector<rig::one_block> run;
    for (uint32_t i = 0; i < 16; ++i) run.push_back({i + 4, i + 8});
    const uint64_t before = r.device.counts.pieces;
    r.submit(KVO_OP_STORE, run, KVO_STREAM_IDLE);
    r.settle();
    CHECK(r.device.counts.pieces - before == 1);
    CHECK(r.counts().pieces_merged == 15);
    CHECK(slots[4 * 256] == 9);
    CHECK(slots[20 * 256 - 1] == 9);
    CHECK(slots[20 * 256] == 0);
}

TEST_CASE("no copy, record or wait of ours goes to a default stream") {
    rig r;
    void* stream = r.device.make_stream();
    for (uint32_t i = 0; i < 50; ++i) {
        r.submit(KVO_OP_STORE, {{i, i % 32}}, stream);
        r.submit(KVO_OP_LOAD, {{i, (i + 7) % 32}}, stream);
        r.settle();
    }
    for (const auto& [s, n] : r.device.counts.by_stream) CHECK(reinterpret_cast<uintptr_t>(s) > 2);
    r.submit(KVO_OP_STORE, {{1, 1}}, nullptr);  // on purpose
    r.settle();
    CHECK(r.device.counts.by_stream[nullptr] == 1);
}

TEST_CASE("a capturing stream is refused and nothing changes") {
    rig r;
    r.device.capturing = r.device.make_stream();
    op_request request;
    request.kind = KVO_OP_STORE;
    request.tag = 77;
    kvo_op_t id{};
    CHECK(r.engine->submit(r.open(request, {{1, 1}}), r.device.capturing, &id) == KVO_E_CAPTURING);
    CHECK(r.over[77].size() == 1);
    CHECK(r.ended[77].empty());
    CHECK(r.counts().ops_active == 0);
    CHECK(r.counts().fence_entries == 0);
}

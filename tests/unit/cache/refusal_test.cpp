// What must be refused or must end although the moment is a bad one: a shutdown in the middle of a
// submit, dependence on what is no load, handles of another cache, streams that are being captured,
// a device that refuses waits, set-up without a thread of its own.
#include "device/host_streams.hpp"
#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::step_device;

namespace {

// A step device that shuts the cache down while the cache records an event on the caller's stream.
struct closing_device {
    step_device device;
    cache* victim = nullptr;
    status closed = KVO_E_INTERNAL;
    device_table table() {
        device_table t = device.table();
        inner = t.event_record;
        t.context = this;
        t.stream_create = [](void* c, void** s) { return of(c).t0().stream_create(&of(c).device, s); };
        t.stream_check = [](void* c, void* s) { return of(c).t0().stream_check(&of(c).device, s); };
        t.event_create = [](void* c, void** e) { return of(c).t0().event_create(&of(c).device, e); };
        t.event_destroy = [](void* c, void* e) { of(c).t0().event_destroy(&of(c).device, e); };
        t.event_query = [](void* c, void* e) { return of(c).t0().event_query(&of(c).device, e); };
        t.stream_wait = [](void* c, void* s, void* e) {
            return of(c).t0().stream_wait(&of(c).device, s, e);
        };
        t.copy_batch = [](void* c, void* s, copy_direction d, const copy_piece* p, uint32_t n,
                          uint32_t* q) { return of(c).t0().copy_batch(&of(c).device, s, d, p, n, q); };
        t.driver_code = [](void*) { return 0; };
        t.event_record = [](void* c, void* e, void* s) {
            closing_device& d = of(c);
            if (d.victim != nullptr) d.closed = d.victim->shutdown(0);
            d.victim = nullptr;
            return d.inner(&d.device, e, s);
        };
        return t;
    }

private:
    static closing_device& of(void* c) { return *static_cast<closing_device*>(c); }
    device_table t0() { return device.table(); }
    status (*inner)(void*, void*, void*) = nullptr;
};

}  // namespace

TEST_CASE("a submit that a shutdown overtakes is refused and copies nothing") {
    closing_device closing;
    const device_table table = closing.table();
    cache_fixture f({.custom = &table});
    void* const stream = closing.device.make_stream();
    closing.victim = f.c.get();
    kvo_store_result_t r{};
    kvo_op_t op{};
    const std::vector<uint32_t> ids{0};
    CHECK(f.c->store({}, f.keys({1}), nullptr, f.lists(ids), stream, KVO_STORE_OPTIONS_INIT, {}, &r,
                     &op) == KVO_E_STATE);
    CHECK(closing.closed == KVO_OK);
    CHECK(op.value == 0);
    uint32_t n = 0;
    for (int i = 0; i < 10; ++i) {
        closing.device.run();
        REQUIRE(f.c->poll(nullptr, 0, 0, &n) == KVO_OK);
    }
    CHECK(closing.device.counts.batches == 0);
    CHECK(f.stats().blocks_pinned == 0);
    CHECK(f.c->may_destroy(0) == KVO_OK);
}

TEST_CASE("a store can depend on loads only") {
    cache_fixture f({.blocks = 8});
    const auto first = f.submit({1});
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.after = &first.op;
    o.n_after = 1;
    kvo_store_result_t r{};
    kvo_op_t op{};
    const std::vector<uint32_t> ids{4};
    CHECK(f.c->store({}, f.keys({2}), nullptr, f.lists(ids), f.stream, o, {}, &r, &op) ==
          KVO_E_ARGUMENT);
    f.settle();
    CHECK(f.take(first.op).status == KVO_OK);
    CHECK(f.stats().slots_free == 7);
}

TEST_CASE("ops of another cache and numbers that were never given out are foreign") {
    cache_fixture a, b;
    const auto mine = a.submit({1}), theirs = b.submit({1});
    CHECK(mine.op.value != theirs.op.value);
    CHECK(b.c->op_cancel(mine.op) == KVO_E_HANDLE);
    kvo_completion_t done{};
    CHECK(b.c->op_test(mine.op, &done) == KVO_E_HANDLE);
    for (const kvo_op_t op : {mine.op, kvo_op_t{5}, kvo_op_t{(1u << 20) + 3}}) {
        CHECK(b.c->op_wait_stream(op, b.stream, 0) == KVO_E_HANDLE);
        kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
        o.after = &op;
        o.n_after = 1;
        kvo_store_result_t r{};
        kvo_op_t none{};
        const std::vector<uint32_t> ids{4};
        CHECK(b.c->store({}, b.keys({2}), nullptr, b.lists(ids), b.stream, o, {}, &r, &none) ==
              KVO_E_HANDLE);
    }
    a.settle();
    b.settle();
    CHECK(a.take(mine.op).status == KVO_OK);
    CHECK(b.take(theirs.op).status == KVO_OK);
}

TEST_CASE("a fence on a stream that is being captured changes nothing") {
    cache_fixture f;
    const auto s = f.submit({1, 2});
    const std::vector<uint32_t> ids{0, 1};
    const uint64_t waits = f.device.counts.waits;
    CHECK(f.c->fence(f.lists(ids), f.device.capturing, KVO_FENCE_DROP) == KVO_E_CAPTURING);
    CHECK(f.c->fence_op(s.op, 0, f.device.capturing) == KVO_E_CAPTURING);
    CHECK(f.device.counts.waits == waits);
    f.settle();
    CHECK(f.take(s.op).n_done == 2);
}

TEST_CASE("a device that refuses waits ends the call with its status") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2});
    const auto t = f.match({1, 2});
    f.device.launch(f.stream, [](void*) {}, nullptr);  // keeps the gate closed
    kvo_op_t op{};
    const std::vector<uint32_t> ids{20, 21};
    REQUIRE(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) == KVO_OK);
    f.device.fail_wait = 0;
    CHECK(f.c->op_wait_stream(op, f.stream, 0) == KVO_E_TRANSFER);
    f.device.fail_wait = 0;
    CHECK(f.c->fence(f.lists(ids), f.stream, KVO_FENCE_FINISH) == KVO_E_TRANSFER);
    REQUIRE(f.c->op_wait_stream(op, f.stream, 0) == KVO_OK);
    f.settle();
    CHECK(f.take(op).n_done == 2);
}

TEST_CASE("a wait on a load that has failed says so before and after its completion is taken") {
    cache_fixture f({.blocks = 8});
    f.store({1, 2});
    const auto t = f.match({1, 2});
    f.device.fail_batch = 0;
    kvo_op_t op{};
    const std::vector<uint32_t> ids{20, 21};
    REQUIRE(f.c->load(t, 0, 2, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) == KVO_OK);
    // Pulled forward, its last pieces refused by the device: the answer does not wait for the rest.
    CHECK(f.c->op_wait_stream(op, f.stream, 0) == KVO_E_TRANSFER);
    f.settle();
    CHECK(f.c->op_wait_stream(op, f.stream, 0) == KVO_E_TRANSFER);
    CHECK(f.take(op).status == KVO_E_TRANSFER);
    CHECK(f.c->op_wait_stream(op, f.stream, 0) == KVO_E_TRANSFER);
}

TEST_CASE("a deadline of for ever never comes") {
    cache_fixture f({.blocks = 8});
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.deadline_ns = KVO_FOREVER;
    kvo_store_result_t r{};
    kvo_op_t op{};
    const std::vector<uint32_t> ids{0};
    f.fill(0, 1, 0);
    REQUIRE(f.c->store({}, f.keys({1}), nullptr, f.lists(ids), f.stream, o, {}, &r, &op) == KVO_OK);
    f.settle();
    CHECK(f.take(op).status == KVO_OK);
}

TEST_CASE("without a set-up thread the worker zeroes what a purge leaves") {
    cache_fixture f({.blocks = 8,
                     .adjust = [](kvo_config_t* c) { c->progress = KVO_PROGRESS_THREAD; },
                     .host_device = true});
    kvo_ns_options_t scrub = KVO_NS_OPTIONS_INIT;
    scrub.scrub = 1;
    kvo_ns_t secret{};
    REQUIRE(f.c->ns_open("secret", scrub, &secret) == KVO_OK);
    kvo_store_result_t r{};
    kvo_op_t op{};
    const std::vector<uint32_t> ids{0, 1, 2, 3};
    kvo_completion_t done{};
    REQUIRE(f.c->store(secret, f.keys({1, 2, 3, 4}), nullptr, f.lists(ids), KVO_STREAM_IDLE,
                       KVO_STORE_OPTIONS_INIT, {}, &r, &op) == KVO_OK);
    REQUIRE(f.c->op_wait(op, 60'000'000'000, &done) == KVO_OK);
    REQUIRE(f.c->purge(secret, nullptr, &op) == KVO_OK);
    REQUIRE(f.c->op_wait(op, 60'000'000'000, &done) == KVO_OK);
    CHECK(done.status == KVO_OK);
    CHECK(f.stats().slots_free == 8);
}

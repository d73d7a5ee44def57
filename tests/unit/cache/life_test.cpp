// The life of a cache: calls at the wrong moment, bad configurations, shutdown, destroy, fork.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support/cache_fixture.hpp"

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::contains;

namespace {

kvo_config_t plain_config() {
    kvo_config_t c = KVO_CONFIG_INIT;
    c.budget_bytes = 64 << 20;
    c.block_tokens = 16;
    return c;
}

status create(const kvo_config_t& c) {
    std::unique_ptr<cache> out;
    const status s = cache::create(c, nullptr, {}, &out);
    CHECK((s == KVO_OK) == (out != nullptr));
    return s;
}

// A cache that is created but not started.
std::unique_ptr<cache> created() {
    std::unique_ptr<cache> out;
    REQUIRE(cache::create(plain_config(), nullptr, {}, &out) == KVO_OK);
    return out;
}

// Every call of the block level once, with arguments that would be fine on a cache without blocks.
std::vector<std::pair<const char*, status>> every_call(cache& c) {
    std::vector<std::pair<const char*, status>> out;
    kvo_match_t m{};
    kvo_ticket_t t{};
    kvo_op_t op{};
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    kvo_completion_t done{};
    kvo_stats_t stats{};
    stats.struct_size = sizeof stats;
    stats.api_version = KVO_API_VERSION;
    kvo_capacity_t capacity = KVO_CAPACITY_INIT;
    uint32_t n = 0;
    int fd = -1;
    void* data = nullptr;
    const void* view = nullptr;
    uint64_t bytes = 0, lost = 0;
    kvo_event_t event{};
    void* const idle = KVO_STREAM_IDLE;
    out.emplace_back("probe", c.probe({}, {}, 0, &m));
    out.emplace_back("match", c.match({}, {}, 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m));
    out.emplace_back("load", c.load({}, 0, 0, {}, idle, KVO_LOAD_OPTIONS_INIT, {}, &op));
    out.emplace_back("store",
                     c.store({}, {}, nullptr, {}, idle, KVO_STORE_OPTIONS_INIT, {}, &r, &op));
    out.emplace_back("purge", c.purge({}, nullptr, &op));
    out.emplace_back("reserve", c.reserve({}, {}, nullptr, KVO_STORE_OPTIONS_INIT, &r, &v));
    out.emplace_back("slot", c.slot({}, 0, 0, &data, &bytes));
    out.emplace_back("commit", c.commit({}, idle, &op));
    out.emplace_back("view", c.view({}, 0, 0, &view, &bytes));
    out.emplace_back("resize", c.resize(1));
    out.emplace_back("reset", c.reset());
    out.emplace_back("group_detach", c.group_detach(0));
    out.emplace_back("group_attach", c.group_attach(0, nullptr, 0));
    // From here on also legal after shutdown.
    out.emplace_back("ticket_poll", c.ticket_poll({}, &m));
    out.emplace_back("ticket_trim", c.ticket_trim({}, 0));
    out.emplace_back("ticket_release", c.ticket_release({}));
    out.emplace_back("abort", c.abort({}));
    out.emplace_back("fence", c.fence({}, idle, KVO_FENCE_DROP));
    out.emplace_back("op_wait_stream", c.op_wait_stream({}, nullptr, 0));
    out.emplace_back("op_test", c.op_test({}, &done));
    out.emplace_back("op_wait", c.op_wait({}, 0, &done));
    out.emplace_back("op_cancel", c.op_cancel({}));
    out.emplace_back("poll", c.poll(&done, 0, 0, &n));
    out.emplace_back("pending", c.pending(&n));
    out.emplace_back("event_fd", c.event_fd(&fd));
    out.emplace_back("capacity", c.capacity(&capacity));
    out.emplace_back("quiesce", c.quiesce(0));
    out.emplace_back("stats", c.stats(&stats));
    out.emplace_back("events_poll", c.events_poll(&event, 1, &n, &lost));
    out.emplace_back("shutdown", c.shutdown(0));
    return out;
}

constexpr size_t kEndedByShutdown = 13;  // leading entries of every_call

}  // namespace

TEST_CASE("a configuration that cannot be is refused with the field and its value") {
    struct wrong {
        void (*change)(kvo_config_t*);
        status why;
        const char* text;
    };
    const wrong all[] = {
        {[](kvo_config_t* c) { c->struct_size = 4; }, KVO_E_STRUCT, "struct_size 4"},
        {[](kvo_config_t* c) { c->api_version = 9; }, KVO_E_STRUCT, "api_version 9"},
        {[](kvo_config_t* c) { c->budget_bytes = 0; }, KVO_E_ARGUMENT, "budget_bytes is required"},
        {[](kvo_config_t* c) { c->max_bytes = 5; }, KVO_E_ARGUMENT, "max_bytes 5 is below"},
        {[](kvo_config_t* c) { c->block_tokens = 0; }, KVO_E_ARGUMENT, "block_tokens is 0"},
        {[](kvo_config_t* c) { c->block_tokens = 65537; }, KVO_E_ARGUMENT, "block_tokens is 65537"},
        {[](kvo_config_t* c) { c->device = 9; }, KVO_E_ARGUMENT, "device is 9"},
        {[](kvo_config_t* c) { c->policy = 9; }, KVO_E_ARGUMENT, "policy is 9"},
        {[](kvo_config_t* c) { c->progress = 9; }, KVO_E_ARGUMENT, "progress is 9"},
        {[](kvo_config_t* c) { c->setup = 9; }, KVO_E_ARGUMENT, "setup is 9"},
        {[](kvo_config_t* c) { c->max_ops = 0; }, KVO_E_ARGUMENT, "max_ops is 0"},
        {[](kvo_config_t* c) { c->max_tickets = 1u << 20; }, KVO_E_ARGUMENT,
         "max_tickets is 1048576"},
        {[](kvo_config_t* c) { c->max_seq_tokens = UINT64_MAX - 1; }, KVO_E_ARGUMENT,
         "max_seq_tokens is 18446744073709551614"},
        {[](kvo_config_t* c) { c->max_extra_bytes = UINT64_MAX - 1; }, KVO_E_ARGUMENT,
         "max_extra_bytes is"},
        {[](kvo_config_t* c) { c->host_share = 0; }, KVO_E_ARGUMENT, "host_share is 0"},
        {[](kvo_config_t* c) { c->fingerprint_bytes = 5; }, KVO_E_ARGUMENT, "fingerprint is NULL"},
        {[](kvo_config_t* c) { c->numa_node = -2; }, KVO_E_ARGUMENT, "numa_node is -2"},
        {[](kvo_config_t* c) { c->huge_pages = 2; }, KVO_E_ARGUMENT, "huge_pages is 2"},
        {[](kvo_config_t* c) { c->reserved = 1; }, KVO_E_ARGUMENT, "reserved is 1"},
    };
    for (const wrong& w : all) {
        kvo_config_t c = plain_config();
        w.change(&c);
        CHECK(create(c) == w.why);
        CHECK_THAT(error_text(), contains(w.text));
    }
    CHECK(create(plain_config()) == KVO_OK);
}

TEST_CASE("every call before start is a state error and changes nothing") {
    const auto c = created();
    for (const auto& [name, result] : every_call(*c)) {
        INFO(name);
        CHECK(result == KVO_E_STATE);
    }
    CHECK(c->start(0, 0) == KVO_E_STATE);  // no group yet
    CHECK(c->may_destroy(0) == KVO_OK);
}

TEST_CASE("after shutdown intake is closed but what was accepted can be taken") {
    cache_fixture f;
    f.store({1, 2});
    const auto ticket = f.match({1});
    const auto running = f.submit({3});
    CHECK(f.c->shutdown(0) == KVO_OK);  // nothing of it was queued
    const auto calls = every_call(*f.c);
    for (size_t i = 0; i < calls.size(); ++i) {
        INFO(calls[i].first);
        CHECK((calls[i].second == KVO_E_STATE) == (i < kEndedByShutdown));
    }
    const kvo_completion_t done = f.take(running.op);
    CHECK(done.status == KVO_E_CANCELLED);
    CHECK(done.n_done == 0);
    CHECK(f.c->may_destroy(0) == KVO_E_BUSY);
    CHECK_THAT(error_text(), contains("1 tickets"));
    CHECK(f.c->ticket_release(ticket) == KVO_OK);
    CHECK(f.c->may_destroy(0) == KVO_OK);
}

TEST_CASE("groups come before start, start comes once") {
    cache_fixture f;
    kvo_group_config_t g = KVO_GROUP_CONFIG_INIT;
    g.kind = KVO_GROUP_OPAQUE;
    g.opaque_bytes = 8;
    uint32_t index = 0;
    CHECK(f.c->register_group(g, &index) == KVO_E_STATE);
    CHECK(f.c->start(0, 0) == KVO_E_STATE);
}

TEST_CASE("destroy is refused with the counts while something is held, unless told to discard") {
    cache_fixture f;
    f.store({1, 2});
    const auto ticket = f.match({1, 2});
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    const auto keys = f.keys({7});
    REQUIRE(f.c->reserve({}, keys, nullptr, KVO_STORE_OPTIONS_INIT, &r, &v) == KVO_OK);
    const auto running = f.submit({3});
    CHECK(f.c->may_destroy(0) == KVO_E_BUSY);
    CHECK_THAT(error_text(),
               contains("1 ops unfinished, 0 completions not taken, 1 tickets, 1 reservations"));
    f.settle();  // nothing was changed by the refusal
    CHECK(f.take(running.op).status == KVO_OK);
    CHECK(f.c->may_destroy(4) == KVO_E_ARGUMENT);
    CHECK(f.c->may_destroy(KVO_DESTROY_DISCARD) == KVO_OK);
    CHECK(f.c->ticket_release(ticket) == KVO_E_HANDLE);
    CHECK(f.c->abort(v) == KVO_E_HANDLE);
}

TEST_CASE("a forked child gets a status from every call and touches nothing") {
    cache_fixture f;
    f.store({1});
    const pid_t child = fork();
    if (child == 0) {
        int wrong = 0;
        for (const auto& [name, result] : every_call(*f.c)) wrong += result == KVO_E_FORKED ? 0 : 1;
        wrong += f.c->may_destroy(KVO_DESTROY_DISCARD) == KVO_E_FORKED ? 0 : 1;
        f.c.reset();
        _exit(wrong);
    }
    int how = 0;
    REQUIRE(waitpid(child, &how, 0) == child);
    CHECK(WIFEXITED(how));
    CHECK(WEXITSTATUS(how) == 0);
    CHECK(f.here({1}) == "1");
}

TEST_CASE("the event descriptor becomes readable with a completion and is the cache's own") {
    cache_fixture f;
    int fd = -1, again = -1;
    REQUIRE(f.c->event_fd(&fd) == KVO_OK);
    REQUIRE(f.c->event_fd(&again) == KVO_OK);
    CHECK(fd == again);
    pollfd p{fd, POLLIN, 0};
    CHECK(::poll(&p, 1, 0) == 0);
    const auto one = f.submit({1});
    f.settle();
    CHECK(::poll(&p, 1, 0) == 1);
    uint64_t value = 0;
    CHECK(read(fd, &value, sizeof value) == sizeof value);
    CHECK(::poll(&p, 1, 0) == 0);
    CHECK(f.take(one.op).status == KVO_OK);
}

TEST_CASE("with its own threads a cache starts, copies, and ends by itself") {
    cache_fixture f({.blocks = 16,
                     .adjust =
                         [](kvo_config_t* c) {
                             c->progress = KVO_PROGRESS_THREAD;
                             c->setup = KVO_SETUP_BACKGROUND;
                         },
                     .host_device = true});
    while (f.capacity().blocks_now < 16) std::this_thread::yield();
    const auto one = f.submit({1, 2, 3});
    kvo_completion_t done{};
    REQUIRE(f.c->op_wait(one.op, 10'000'000'000, &done) == KVO_OK);
    CHECK(done.n_done == 3);
    CHECK(f.c->op_wait(one.op, 0, &done) == KVO_E_HANDLE);
    const auto ticket = f.match({1, 2, 3});
    kvo_op_t op{};
    const std::vector<uint32_t> ids{20, 21, 22};
    REQUIRE(f.c->load(ticket, 0, 3, f.lists(ids), f.stream, KVO_LOAD_OPTIONS_INIT, {}, &op) ==
            KVO_OK);
    CHECK(f.c->quiesce(10'000'000'000) == KVO_OK);
    REQUIRE(f.c->op_test(op, &done) == KVO_OK);
    for (uint32_t i = 0; i < 3; ++i) CHECK(f.holds(20 + i, i + 1, 0));
    CHECK(f.stats().cpu_ns_worker > 0);
    CHECK(f.stats().cpu_ns_setup > 0);
    CHECK(f.c->ticket_release(ticket) == KVO_OK);
    CHECK(f.c->shutdown(KVO_FOREVER) == KVO_OK);
    CHECK(f.c->may_destroy(0) == KVO_OK);
}

TEST_CASE("a cache without a device keeps what the engine writes itself") {
    kvo_config_t c = plain_config();
    c.device = KVO_DEVICE_NONE;
    c.progress = KVO_PROGRESS_MANUAL;
    c.setup = KVO_SETUP_EAGER;
    std::unique_ptr<cache> own;
    REQUIRE(cache::create(c, nullptr, {}, &own) == KVO_OK);
    kvo_group_config_t g = KVO_GROUP_CONFIG_INIT;
    g.kind = KVO_GROUP_OPAQUE;
    g.opaque_bytes = 100;
    uint32_t index = 0;
    REQUIRE(own->register_group(g, &index) == KVO_OK);
    REQUIRE(own->start(0, 0) == KVO_OK);
    const auto keys = cache_fixture::keys({1, 2});
    kvo_store_result_t r{};
    kvo_reservation_t v{};
    REQUIRE(own->reserve({}, keys, nullptr, KVO_STORE_OPTIONS_INIT, &r, &v) == KVO_OK);
    CHECK(r.n_taken == 2);
    for (uint32_t i = 0; i < 2; ++i) {
        void* data = nullptr;
        uint64_t bytes = 0;
        REQUIRE(own->slot(v, i, 0, &data, &bytes) == KVO_OK);
        CHECK(bytes == 100);
        memset(data, static_cast<int>('a' + i), bytes);
    }
    kvo_op_t op{};
    CHECK(own->commit(v, nullptr, &op) == KVO_E_UNSUPPORTED);  // there are no streams here
    REQUIRE(own->commit(v, KVO_STREAM_IDLE, &op) == KVO_OK);
    kvo_completion_t done{};
    REQUIRE(own->op_wait(op, 1'000'000'000, &done) == KVO_OK);
    CHECK(done.n_done == 2);
    kvo_ticket_t t{};
    kvo_match_t m{};
    REQUIRE(own->match({}, keys, 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m) == KVO_OK);
    CHECK(m.n_ready == 2);
    const void* view = nullptr;
    uint64_t bytes = 0;
    REQUIRE(own->view(t, 1, 0, &view, &bytes) == KVO_OK);
    CHECK(static_cast<const char*>(view)[99] == 'b');
    CHECK(own->view(t, 2, 0, &view, &bytes) == KVO_E_RANGE);
    CHECK(own->view(t, 0, 1, &view, &bytes) == KVO_E_RANGE);
    CHECK(own->ticket_release(t) == KVO_OK);
}

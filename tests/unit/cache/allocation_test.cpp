// No call of match, probe, submit and poll allocates: malloc and its relatives and mmap are counted
// on all threads of this executable while a cache works, from its first use to a full table of ops.
#include <thread>

#include "support/cache_fixture.hpp"
#include "support/count_allocations.hpp"

#if KVO_COUNT_ALLOCATIONS

using namespace kvo;
using kvo::test::cache_fixture;
using kvo::test::counted;

namespace {

// What an engine does for request r; completions are taken when `taking`.
void one_request(cache& c, uint32_t r, void* stream, bool taking, std::span<kvo_key_t> keys,
                 std::span<uint32_t> ids, uint64_t* failures) {
    const auto n = static_cast<uint32_t>(keys.size());
    for (uint32_t i = 0; i < n; ++i) {
        keys[i] = kvo_key_t{};
        const uint32_t number = r % 50 * 100 + i + 1;
        memcpy(keys[i].bytes, &number, sizeof number);
        ids[i] = i;
    }
    const auto ok = [failures](status s) {
        const bool fine =
            s == KVO_OK || s == KVO_E_OPS_FULL || s == KVO_E_BUSY || s == KVO_E_NOT_READY;
        *failures += fine ? 0u : 1u;
    };
    kvo_match_t m{};
    ok(c.probe({}, keys, 0, &m));
    kvo_ticket_t t{};
    ok(c.match({}, keys, 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m));
    kvo_op_t op{};
    if (t.value != 0) {
        ok(c.ticket_poll(t, &m));
        const kvo_blocks_t list{0, m.n_ready, ids.data()};
        ok(c.load(t, 0, m.n_ready, {&list, 1}, stream, KVO_LOAD_OPTIONS_INIT, {}, &op));
        ok(c.ticket_release(t));
    }
    kvo_store_result_t result{};
    const kvo_blocks_t list{0, n, ids.data()};
    ok(c.store({}, keys, nullptr, {&list, 1}, stream, KVO_STORE_OPTIONS_INIT, {}, &result, &op));
    if (r % 5 == 0) ok(c.fence({&list, 1}, stream, KVO_FENCE_DROP));
    kvo_completion_t done[16];
    uint32_t n_done = 0;
    if (taking) ok(c.poll(done, 16, 0, &n_done));
}

}  // namespace

TEST_CASE("the counter sees allocations") {
    counted c;
    std::thread([] { delete new std::vector<int>(100); }).join();
    CHECK(c.n() >= 2);
    CHECK(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    CHECK(c.n() >= 3);
}

TEST_CASE(
    "match, probe, submit and poll allocate nothing, from the first use to a full table of ops") {
    for (const bool manual : {true, false}) {
        cache_fixture f({.blocks = 900,
                         .n_device_blocks = 1024,
                         .part_bytes = {512},
                         .adjust =
                             [manual](kvo_config_t* c) {
                                 c->progress = manual ? KVO_PROGRESS_MANUAL : KVO_PROGRESS_THREAD;
                                 c->max_ops = 128;
                             },
                         .host_device = true});
        std::vector<kvo_key_t> keys(700);
        std::vector<uint32_t> ids(700);
        uint64_t failures = 0, n = 0;
        {
            counted c;
            for (uint32_t r = 0; r < 200; ++r) {
                const size_t n_keys =
                    r % 10 == 9 ? 700 : 1 + r % 40;  // some over several stretches
                one_request(*f.c, r, f.stream, true, std::span(keys).first(n_keys), ids, &failures);
            }
            for (uint32_t r = 0; r < 200; ++r) {  // now without taking completions
                one_request(*f.c, r, f.stream, false, std::span(keys).first(5), ids, &failures);
            }
            uint32_t pending = 1;
            kvo_completion_t done[16];
            while (pending > 0) {
                failures += f.c->poll(done, 0, 1000, &pending) == KVO_OK ? 0u : 1u;
                failures += f.c->pending(&pending) == KVO_OK ? 0u : 1u;
            }
            n = c.n();
        }
        INFO("manual " << manual);
        CHECK(n == 0);
        CHECK(failures == 0);
        CHECK(f.stats().completions_waiting == 128);  // the table was full
    }
}

#endif

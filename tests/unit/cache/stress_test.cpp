// Eight threads do everything at once to one cache: match, load, store, fence, cancel, purge,
// resize, reset, raw slots. Each block carries its namespace, key and version in every word, so
// that whatever comes back can be checked by itself: the right key, one version, no word torn. Run
// under ThreadSanitizer and AddressSanitizer too.
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "device/host_streams.hpp"
#include "support/cache_fixture.hpp"
#include "support/seed.hpp"

using namespace kvo;
using kvo::test::cache_fixture;

namespace {

constexpr uint32_t kThreads = 8;
constexpr uint32_t kOwnBlocks = 32;  // device blocks of a thread
constexpr uint32_t kWords = 48;      // of a block, over two parts
constexpr uint32_t kFirstPart = 32;
constexpr uint32_t kSteps = 400;

uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
}

struct payload {
    static uint64_t word(uint64_t ns, uint64_t key, uint64_t version, uint32_t i) {
        return i == 0 ? version : mix(ns ^ key << 20 ^ version << 40 ^ i);
    }
    template <typename Read>
    static bool is_right(uint64_t ns, uint64_t key, Read read) {
        const uint64_t version = read(0);
        for (uint32_t i = 1; i < kWords; ++i) {
            if (read(i) != word(ns, key, version, i)) return false;
        }
        return true;
    }
};

struct shared_state {
    cache* c = nullptr;
    std::array<std::vector<uint64_t>, 2> parts;  // device memory
    std::vector<kvo_ns_t> namespaces;
    uint64_t small_budget = 0, large_budget = 0;
    std::atomic<uint64_t> wrong_bytes{0}, wrong_status{0}, checked{0}, stored{0}, version{1};
    std::atomic<int> first_wrong_status{0};
};

class worker {
public:
    worker(shared_state& s, uint32_t number)
        : s_(s), random_(test::seed() * 100 + number), first_(number * kOwnBlocks) {
        if (host_stream_create(&stream_) != KVO_OK) ++s_.wrong_status;
    }
    void run() {
        for (uint32_t step = 0; step < kSteps; ++step) one_step();
        if (host_stream_destroy(stream_) != KVO_OK) ++s_.wrong_status;
    }

private:
    void one_step() {
        const auto what = random_() % 100;
        choose_chain();
        if (what < 40) return match_and_load();
        if (what < 80) return store();
        if (what < 90) return raw();
        if (what < 96) return purge_chain();
        if (what < 97) return purge_namespace();
        if (what < 99)
            return expect(s_.c->resize(random_() % 2 == 0 ? s_.small_budget : s_.large_budget), {});
        expect(s_.c->reset(), {});
    }

    void expect(status got, std::initializer_list<status> also) {
        for (const status s : also) {
            if (got == s) return;
        }
        if (got == KVO_OK) return;
        ++s_.wrong_status;
        s_.first_wrong_status = got;
    }

    // A path in a tree of keys: the first three blocks are shared by four chains.
    void choose_chain() {
        ns_ = s_.namespaces[random_() % s_.namespaces.size()];
        const uint64_t chain = random_() % 24, n = 1 + random_() % 12;
        numbers_.clear();
        keys_.clear();
        for (uint64_t i = 0; i < n; ++i) {
            numbers_.push_back((i < 3 ? chain / 4 * 4 : chain) * 100 + i + 1);
            keys_.push_back(cache_fixture::key(numbers_.back()));
        }
        ids_.resize(n);
    }
    std::span<const kvo_blocks_t> list(uint32_t n, uint32_t at = 0) {
        for (uint32_t i = 0; i < n; ++i) ids_[i] = first_ + at + i;
        list_ = {0, n, ids_.data()};
        return {&list_, 1};
    }
    uint64_t& word(uint32_t block, uint32_t i) {
        return i < kFirstPart
                   ? s_.parts[0][uint64_t{block} * kFirstPart + i]
                   : s_.parts[1][uint64_t{block} * (kWords - kFirstPart) + i - kFirstPart];
    }
    void* some_stream() { return random_() % 2 == 0 ? stream_ : KVO_STREAM_IDLE; }

    kvo_completion_t wait(kvo_op_t op) {
        kvo_completion_t done{};
        expect(s_.c->op_wait(op, 60'000'000'000, &done), {});
        return done;
    }

    void match_and_load() {
        kvo_ticket_t t{};
        kvo_match_t m{};
        expect(s_.c->match(ns_, keys_, 0, KVO_MATCH_OPTIONS_INIT, {}, &t, &m), {KVO_E_PINNED_FULL});
        if (t.value == 0) return;
        if (m.n_pending > 0) expect(s_.c->ticket_poll(t, &m), {KVO_E_HANDLE});
        if (random_() % 4 == 0) view(t, m.n_ready);
        if (random_() % 4 == 0) expect(s_.c->ticket_trim(t, m.n_ready / 2), {KVO_E_HANDLE});
        kvo_op_t op{};
        const status got = s_.c->load(t, 0, m.n_ready, list(m.n_ready), some_stream(),
                                      KVO_LOAD_OPTIONS_INIT, {}, &op);
        expect(got, {KVO_E_HANDLE, KVO_E_RANGE, KVO_E_DROPPED, KVO_E_OPS_FULL});
        expect(s_.c->ticket_release(t), {KVO_E_HANDLE});
        if (got != KVO_OK) return;
        if (random_() % 8 == 0) expect(s_.c->op_cancel(op), {});
        const kvo_completion_t done = wait(op);
        expect(static_cast<status>(done.status), {KVO_E_CANCELLED, KVO_E_DROPPED});
        for (uint32_t i = 0; i < done.first_bad && i < done.n_blocks; ++i)
            check(first_ + i, numbers_[i]);
    }
    void check(uint32_t block, uint64_t key) {
        ++s_.checked;
        if (!payload::is_right(ns_.value, key, [&](uint32_t i) { return word(block, i); }))
            ++s_.wrong_bytes;
    }
    void view(kvo_ticket_t t, uint32_t n_ready) {
        for (uint32_t i = 0; i < n_ready; ++i) {
            const void* data = nullptr;
            uint64_t bytes = 0;
            const status got = s_.c->view(t, i, 0, &data, &bytes);
            expect(got, {KVO_E_HANDLE, KVO_E_DROPPED});
            if (got != KVO_OK) return;
            ++s_.checked;
            const auto read = [data](uint32_t k) {
                uint64_t w = 0;
                std::memcpy(&w, static_cast<const uint8_t*>(data) + k * 8, 8);
                return w;
            };
            if (!payload::is_right(ns_.value, numbers_[i], read)) ++s_.wrong_bytes;
        }
    }

    void store() {
        const auto n = static_cast<uint32_t>(keys_.size());
        const uint64_t version = s_.version.fetch_add(1);
        for (uint32_t b = 0; b < n; ++b) {
            for (uint32_t i = 0; i < kWords; ++i)
                word(first_ + b, i) = payload::word(ns_.value, numbers_[b], version, i);
        }
        kvo_store_result_t r{};
        kvo_op_t op{};
        void* const stream = some_stream();
        const status got =
            s_.c->store(ns_, keys_, nullptr, list(n), stream, KVO_STORE_OPTIONS_INIT, {}, &r, &op);
        expect(got, {KVO_E_OPS_FULL});
        if (got != KVO_OK) return;
        s_.stored += r.n_taken;
        if (random_() % 8 == 0) expect(s_.c->op_cancel(op), {});
        if (random_() % 2 == 0) {
            fence(n, stream);
            scribble(n);  // the blocks are ours again, whether their store went through or not
        }
        const kvo_completion_t done = wait(op);
        expect(static_cast<status>(done.status), {KVO_E_CANCELLED, KVO_E_DROPPED});
        scribble(n);
    }
    void fence(uint32_t n, void* stream) {
        const auto mode = random_() % 2 == 0 ? KVO_FENCE_DROP : KVO_FENCE_FINISH;
        status got = KVO_E_NOT_READY;
        while (got == KVO_E_NOT_READY) {
            got = s_.c->fence(list(n), stream, mode);
            uint32_t taken = 0;
            if (got == KVO_E_NOT_READY) expect(s_.c->poll(nullptr, 0, 0, &taken), {});
        }
        expect(got, {});
        if (stream == stream_) expect(host_stream_sync(stream_), {});
    }
    void scribble(uint32_t n) {
        for (uint32_t b = 0; b < n; ++b) {
            for (uint32_t i = 0; i < kWords; ++i) word(first_ + b, i) = 0xBAD;
        }
    }

    void raw() {
        kvo_store_result_t r{};
        kvo_reservation_t v{};
        expect(s_.c->reserve(ns_, keys_, nullptr, KVO_STORE_OPTIONS_INIT, &r, &v),
               {KVO_E_PINNED_FULL});
        if (v.value == 0) return;
        const uint64_t version = s_.version.fetch_add(1);
        for (uint32_t i = 0; i < keys_.size(); ++i) fill(v, i, version);
        if (random_() % 2 == 0) return expect(s_.c->abort(v), {});
        kvo_op_t op{};
        const status got = s_.c->commit(v, some_stream(), &op);
        expect(got, {KVO_E_OPS_FULL});
        if (got == KVO_E_OPS_FULL) return expect(s_.c->abort(v), {});
        expect(static_cast<status>(wait(op).status), {KVO_E_CANCELLED, KVO_E_DROPPED});
    }
    void fill(kvo_reservation_t v, uint32_t i, uint64_t version) {
        void* data = nullptr;
        uint64_t bytes = 0;
        if (s_.c->slot(v, i, 0, &data, &bytes) != KVO_OK) return;  // it got no room
        for (uint32_t k = 0; k < kWords; ++k) {
            const uint64_t w = payload::word(ns_.value, numbers_[i], version, k);
            std::memcpy(static_cast<uint8_t*>(data) + k * 8, &w, 8);
        }
    }

    void purge_chain() {
        kvo_op_t op{};
        const status got = s_.c->purge(ns_, &keys_.back(), &op);
        expect(got, {KVO_E_OPS_FULL});
        if (got == KVO_OK) wait(op);
    }
    void purge_namespace() {
        kvo_op_t op{};
        const status got = s_.c->purge(ns_, nullptr, &op);
        expect(got, {KVO_E_OPS_FULL});
        if (got == KVO_OK) wait(op);
    }

    shared_state& s_;
    std::mt19937_64 random_;
    uint32_t first_;
    void* stream_ = nullptr;
    kvo_ns_t ns_{};
    std::vector<uint64_t> numbers_;
    std::vector<kvo_key_t> keys_;
    std::vector<uint32_t> ids_;
    kvo_blocks_t list_{};
};

void run_stress(kvo_progress_t progress, kvo_policy_t policy) {
    cache_fixture f({.blocks = 100,
                     .n_device_blocks = kThreads * kOwnBlocks,
                     .part_bytes = {kFirstPart * 8, (kWords - kFirstPart) * 8},
                     .adjust =
                         [=](kvo_config_t* c) {
                             c->progress = static_cast<uint32_t>(progress);
                             c->policy = static_cast<uint32_t>(policy);
                             c->setup = KVO_SETUP_BACKGROUND;
                         },
                     .max_blocks = 150,
                     .host_device = true});
    shared_state s;
    s.c = f.c.get();
    s.parts[0].resize(uint64_t{kThreads} * kOwnBlocks * kFirstPart);
    s.parts[1].resize(uint64_t{kThreads} * kOwnBlocks * (kWords - kFirstPart));
    const kvo_part_t parts[] = {
        {s.parts[0].data(), kFirstPart * 8, kFirstPart * 8, 0, 1, 0},
        {s.parts[1].data(), (kWords - kFirstPart) * 8, (kWords - kFirstPart) * 8, 0, 1, 0}};
    REQUIRE(f.c->group_detach(0) == KVO_OK);
    REQUIRE(f.c->group_attach(0, parts, 2) == KVO_OK);
    s.small_budget = f.budget_for(60);
    s.large_budget = f.budget_for(150);
    kvo_ns_options_t scrub = KVO_NS_OPTIONS_INIT;
    scrub.scrub = 1;
    kvo_ns_t secret{};
    REQUIRE(f.c->ns_open("secret", scrub, &secret) == KVO_OK);
    s.namespaces = {kvo_ns_t{}, secret};

    std::vector<worker> workers;
    for (uint32_t i = 0; i < kThreads; ++i) workers.emplace_back(s, i);
    std::vector<std::thread> threads;
    for (worker& w : workers) threads.emplace_back([&w] { w.run(); });
    for (std::thread& t : threads) t.join();

    CHECK(s.wrong_bytes == 0);
    INFO("first unexpected status: " << s.first_wrong_status);
    CHECK(s.wrong_status == 0);
    CHECK(s.checked > 500);  // it did happen
    CHECK(s.stored > 500);
    CHECK(f.c->quiesce(60'000'000'000) == KVO_OK);
    REQUIRE(f.c->resize(f.budget_for(100)) == KVO_OK);
    const auto is_settled = [](const kvo_stats_t& now) {
        return now.blocks_now == now.blocks_target && now.slots_zombie == 0 &&
               now.blocks_resident + now.slots_free == now.blocks_now;
    };
    kvo_stats_t at_end = f.stats();
    for (int i = 0; i < 100000 && !is_settled(at_end); ++i) {
        std::this_thread::yield();  // set-up works in the background
        at_end = f.stats();
    }
    CHECK(at_end.blocks_now >= 100);
    CHECK(at_end.blocks_resident + at_end.slots_free == at_end.blocks_now);
    CHECK(at_end.blocks_pinned == 0);
    CHECK(at_end.slots_zombie == 0);
    CHECK(at_end.tickets + at_end.reservations + at_end.fence_entries +
              at_end.completions_waiting ==
          0);
    CHECK(f.c->may_destroy(0) == KVO_OK);
}

}  // namespace

TEST_CASE("eight threads doing everything get right bytes or a miss, worker thread, LRU") {
    run_stress(KVO_PROGRESS_THREAD, KVO_POLICY_LRU);
}
TEST_CASE("eight threads doing everything get right bytes or a miss, manual progress, ARC") {
    run_stress(KVO_PROGRESS_MANUAL, KVO_POLICY_ARC);
}

#include "index/block_index.hpp"

#include <map>
#include <random>

#include "replay.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

constexpr ns_id kNs{0};

struct recorder final : index_owner {
    std::vector<std::pair<entry_id, leave_reason>> unpublished;
    std::vector<entry_id> released;
    void on_unpublish(entry_id e, leave_reason why) override { unpublished.emplace_back(e, why); }
    void on_release(entry_id e) override { released.push_back(e); }
};

struct fixture {
    explicit fixture(uint32_t capacity, kvo_policy_t kind = KVO_POLICY_LRU) {
        REQUIRE(block_index::create({capacity, 1, kind}, owner, &index) == KVO_OK);
    }
    entry_id find(uint64_t id) {
        const kvo_key_t key = key_of(id);
        entry_id e;
        index->find(kNs, std::span(&key, 1), std::span(&e, 1));
        return e;
    }
    entry_id put(uint64_t id, entry_id parent = kNoEntry) {
        const auto how =
            parent == kNoEntry ? block_index::lineage::root : block_index::lineage::child;
        if (parent != kNoEntry) index->pin(parent);
        const entry_id e = index->reserve(kNs, key_of(id), how, parent);
        if (e != kNoEntry) index->commit(e, 1);
        if (parent != kNoEntry) index->unpin(parent);
        return e;
    }
    recorder owner;
    std::unique_ptr<block_index> index;
};

}  // namespace

TEST_CASE("keys are compared whole and inside their namespace") {
    fixture f(8);
    kvo_key_t a = key_of(1), b = key_of(1);
    b.bytes[31] = 1;
    f.index->commit(f.index->reserve(ns_id{0}, a, block_index::lineage::root, kNoEntry), 1);
    entry_id e;
    f.index->find(ns_id{0}, std::span(&b, 1), std::span(&e, 1));
    CHECK(e == kNoEntry);
    f.index->find(ns_id{1}, std::span(&a, 1), std::span(&e, 1));
    CHECK(e == kNoEntry);
    f.index->find(ns_id{0}, std::span(&a, 1), std::span(&e, 1));
    CHECK(e != kNoEntry);
}

TEST_CASE("free room is used before anything is evicted") {
    fixture f(4);
    for (uint64_t id : std::vector<uint64_t>{1, 2, 3, 4}) f.put(id);
    f.index->remove(f.find(3), leave_reason::purged);
    f.put(5);
    CHECK(f.owner.unpublished.size() == 1);  // only the purge
    for (uint64_t id : std::vector<uint64_t>{1, 2, 4, 5}) CHECK(f.find(id) != kNoEntry);
    // the same after a store that came to nothing
    f.index->remove(f.find(1), leave_reason::purged);
    f.index->abandon(f.index->reserve(kNs, key_of(9), block_index::lineage::root, kNoEntry));
    f.put(6);
    CHECK(f.owner.unpublished.size() == 2);
    CHECK(f.index->counts().resident == 4);
}

TEST_CASE("with everything pinned a reservation is refused and nothing changes") {
    for (kvo_policy_t kind : {KVO_POLICY_LRU, KVO_POLICY_ARC}) {
        fixture f(3, kind);
        for (uint64_t id : std::vector<uint64_t>{1, 2, 3}) f.index->pin(f.put(id));
        CHECK(f.put(4) == kNoEntry);
        CHECK(f.owner.unpublished.empty());
        CHECK(f.index->counts().pinned == 3);
        f.index->unpin(f.find(2));
        CHECK(f.put(4) != kNoEntry);
        CHECK(f.find(2) == kNoEntry);
    }
}

TEST_CASE("a removed entry that is pinned keeps its record until the last unpin") {
    fixture f(4);
    const entry_id e = f.put(1);
    f.index->pin(e);
    f.index->pin(e);
    f.index->remove(e, leave_reason::purged);
    CHECK(f.find(1) == kNoEntry);
    CHECK(f.index->state(e) == entry_state::dead);
    CHECK(f.put(1) != e);  // a new life under the same key, in a record of its own
    f.index->unpin(e);
    CHECK(f.owner.released.empty());
    f.index->unpin(e);
    CHECK(f.owner.released == std::vector<entry_id>{e});
}

TEST_CASE("a store that commits late does not make a child more recent than its parent") {
    fixture f(4);
    const entry_id a = f.put(1);
    f.index->pin(a);
    const entry_id b = f.index->reserve(kNs, key_of(2), block_index::lineage::child, a);
    f.index->unpin(a);
    f.put(7);
    f.put(8);
    f.index->commit(b, 1);  // after 7 and 8, but behind its parent 1
    f.put(9);
    CHECK(f.find(2) == kNoEntry);
    CHECK(f.find(1) != kNoEntry);
}

TEST_CASE(
    "a child freed while its parent is pinned goes behind its nearest ancestor that may leave") {
    fixture f(4);
    const entry_id root = f.put(1), middle = f.put(2, root), leaf = f.put(3, middle);
    f.index->pin(leaf);
    f.index->pin(middle);
    f.index->unpin(leaf);    // middle has no place now
    f.index->unpin(middle);  // goes behind root
    f.put(4);
    for (const uint64_t gone : std::vector<uint64_t>{3, 2, 1}) {
        f.index->evict_one(leave_reason::evicted);
        CHECK(f.find(gone) == kNoEntry);
        CHECK(f.index->counts().orphans == 0);
    }
}

TEST_CASE("children of a parent that left are orphans, leave first, and can be adopted back") {
    fixture f(5);
    const entry_id a = f.put(1);
    const entry_id b = f.put(2, a);
    f.put(3, b);
    f.put(4, a);
    f.index->remove(a, leave_reason::purged);
    CHECK(f.index->counts().orphans == 2);  // 2 and 4; 3 still has its parent
    CHECK(f.index->is_orphan(f.find(2)));
    CHECK_FALSE(f.index->is_orphan(f.find(3)));
    const entry_id again = f.put(1);
    f.index->link(f.find(4), again);
    CHECK(f.index->counts().orphans == 1);
    f.put(5);  // uses the free record
    f.put(6);  // the orphan 2 leaves; 3 becomes one
    CHECK(f.find(2) == kNoEntry);
    CHECK(f.index->is_orphan(f.find(3)));
    f.put(7);
    CHECK(f.find(3) == kNoEntry);
    CHECK(f.find(4) != kNoEntry);
    CHECK(f.index->counts().orphaned_total == 3);
}

TEST_CASE("a victim is found in constant time with almost everything pinned") {
    // Every pinned entry was taken out of the victim list, so the one idle entry is its head at
    // once; a search that walked over pinned ones would need 10^10 steps here and never end.
    constexpr uint32_t n = 100'000;
    for (kvo_policy_t kind : {KVO_POLICY_LRU, KVO_POLICY_ARC}) {
        fixture f(n, kind);
        for (uint64_t id = 0; id < n - 1; ++id) f.index->pin(f.put(id + 1));
        f.put(n);
        for (uint64_t id = n + 1; id < 2 * n; ++id) REQUIRE(f.put(id) != kNoEntry);
        CHECK(f.owner.unpublished.size() == n - 1);
        CHECK(f.index->counts().pinned == n - 1);
    }
}

TEST_CASE("metadata stays within 128 bytes a block beside ghosts") {
    constexpr uint32_t n = 1'000'000;
    for (kvo_policy_t kind : {KVO_POLICY_LRU, KVO_POLICY_ARC}) {
        const index_config config{n, 1, kind};
        CHECK(block_index::bytes_for(config) - block_index::ghost_bytes_for(config) <=
              uint64_t{128} * n);
    }
}

TEST_CASE("the index agrees with a plain map over random operations") {
    for (uint64_t s = 0; s < 40; ++s) {
        std::mt19937_64 random(seed() * 77 + s);
        const auto capacity = static_cast<uint32_t>(2 + random() % 30);
        INFO("seed " << seed() * 77 + s << " capacity " << capacity);
        fixture f(capacity, s % 2 == 0 ? KVO_POLICY_LRU : KVO_POLICY_ARC);
        std::map<uint64_t, entry_id> live;
        std::map<entry_id, int> pins;
        const auto forget_gone = [&] {
            for (auto [e, why] : f.owner.unpublished) {
                std::erase_if(live, [e = e](const auto& item) { return item.second == e; });
            }
            f.owner.unpublished.clear();
        };
        for (int i = 0; i < 2000; ++i) {
            const uint64_t id = 1 + random() % (2 * capacity);
            const auto it = live.find(id);
            REQUIRE((f.find(id) != kNoEntry) == (it != live.end()));
            const uint64_t what = random() % 10;
            if (it == live.end()) {
                const auto parent = live.find(1 + random() % (2 * capacity));
                const entry_id e = f.put(id, parent == live.end() ? kNoEntry : parent->second);
                forget_gone();
                if (e != kNoEntry) live[id] = e;
            } else if (what < 4) {
                f.index->touch(it->second);
            } else if (what < 6) {
                f.index->pin(it->second);
                ++pins[it->second];
            } else if (what < 8 && !pins.empty()) {
                const auto p = pins.begin();
                f.index->unpin(p->first);
                if (--p->second == 0) pins.erase(p);
            } else if (what == 8) {
                f.index->remove(it->second, leave_reason::purged);
                forget_gone();
            }
            const auto c = f.index->counts();
            REQUIRE(c.resident == live.size());
            REQUIRE(c.pinned == pins.size());
            REQUIRE(c.resident + c.dead <= capacity);
        }
        for (auto [e, n] : pins) {
            while (n-- > 0) f.index->unpin(e);
        }
        CHECK(f.index->counts().dead == 0);
    }
}

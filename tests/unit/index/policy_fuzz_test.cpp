#include <map>
#include <memory>
#include <random>

#include "index/arc.hpp"
#include "index/policy.hpp"
#include "naive_policy.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

// The real policy as a little cache of its own, with the model beside it.
class pair_of_caches {
public:
    pair_of_caches(kvo_policy_t kind, uint32_t capacity)
        : real_(make_policy(kind, capacity)), arc_(nullptr) {
        real_->set_capacity(capacity);
        if (kind == KVO_POLICY_ARC) {
            auto arc = std::make_unique<naive_arc>();
            arc_ = arc.get();
            model_ = std::move(arc);
        } else {
            model_ = std::make_unique<naive_lru>();
        }
        model_->capacity = capacity;
        for (uint32_t i = capacity; i-- > 0;) free_.push_back(i);
    }

    void access(uint64_t key) {
        bool model_refused = false;
        const bool model_hit = model_->access(key, &model_refused);
        bool refused = false;
        const bool hit = real_access(key, &refused);
        REQUIRE(hit == model_hit);
        REQUIRE(refused == model_refused);
    }
    // Pinned entries keep no place: unpinning makes one the most recent of its list, in the model
    // too.
    void toggle_pin(uint64_t key) {
        const auto it = entry_.find(key);
        if (it == entry_.end()) return;
        if (model_->pinned.erase(key) > 0) {
            real_->unpin(it->second, kNoEntry);
            move_to_newest(key);
        } else {
            model_->pinned.insert(key);
            real_->pin(it->second);
        }
    }
    void check_sizes() const {
        if (arc_ == nullptr) return;
        const auto s = static_cast<const arc_policy&>(*real_).read_sizes();
        REQUIRE(s.t1 == arc_->t1.size());
        REQUIRE(s.t2 == arc_->t2.size());
        REQUIRE(s.b1 == arc_->b1.size());
        REQUIRE(s.b2 == arc_->b2.size());
        REQUIRE(s.p == Approx(arc_->p));
    }

private:
    bool real_access(uint64_t key, bool* refused) {
        const auto it = entry_.find(key);
        if (it != entry_.end()) {
            real_->hit(it->second);
            return true;
        }
        const admission a = real_->admit(key, free_.empty());
        if (free_.empty()) {
            const entry_id victim = real_->victim(a);
            if (victim == kNoEntry) {
                real_->refuse(a);
                *refused = true;
                return false;
            }
            entry_.erase(key_[victim]);
            free_.push_back(raw(victim));
        }
        const entry_id e{free_.back()};
        free_.pop_back();
        real_->insert(e, a);
        real_->unpin(e, kNoEntry);
        entry_[key] = e;
        key_[e] = key;
        return false;
    }
    void move_to_newest(uint64_t key) {
        auto* lru = dynamic_cast<naive_lru*>(model_.get());
        for (auto* l :
             lru != nullptr ? std::vector{&lru->order} : std::vector{&arc_->t1, &arc_->t2}) {
            if (std::find(l->begin(), l->end(), key) == l->end()) continue;
            l->remove(key);
            l->push_back(key);
        }
    }

    std::unique_ptr<policy> real_;
    std::unique_ptr<naive_cache> model_;
    naive_arc* arc_;
    std::map<uint64_t, entry_id> entry_;
    std::map<entry_id, uint64_t> key_;
    std::vector<uint32_t> free_;
};

void fuzz(kvo_policy_t kind, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto capacity = static_cast<uint32_t>(1 + random() % 12);
    const uint64_t n_keys = capacity + 1 + random() % (3 * capacity);
    const uint64_t pin_share = random() % 4;  // some seeds never pin
    INFO("seed " << seed << " capacity " << capacity << " keys " << n_keys);
    pair_of_caches both(kind, capacity);
    for (int i = 0; i < 600; ++i) {
        const uint64_t key = std::min(random() % n_keys, random() % n_keys) + 1;
        if (pin_share > 0 && random() % 8 < pin_share) {
            both.toggle_pin(key);
        } else {
            both.access(key);
        }
        both.check_sizes();
    }
}

}  // namespace

TEST_CASE("LRU and ARC behave as the naive models, with pins, over random operations") {
    for (uint64_t s = 0; s < 200; ++s) {
        fuzz(KVO_POLICY_LRU, seed() * 1000 + s);
        fuzz(KVO_POLICY_ARC, seed() * 1000 + s);
    }
}

TEST_CASE("every sequence of six accesses to four keys at capacity two behaves as the models") {
    for (uint32_t code = 0; code < 4096; ++code) {
        INFO("sequence " << code);
        for (kvo_policy_t kind : {KVO_POLICY_LRU, KVO_POLICY_ARC}) {
            pair_of_caches both(kind, 2);
            for (uint32_t step = 0; step < 6; ++step) both.access((code >> (2 * step) & 3) + 1);
            both.check_sizes();
        }
    }
}

TEST_CASE("ARC takes from the other list when the one it wants has only pinned entries") {
    const auto owned = make_policy(KVO_POLICY_ARC, 4);
    auto& arc = static_cast<arc_policy&>(*owned);
    const auto put = [&](uint32_t i) {
        const admission a = arc.admit(i + 1, false);
        arc.insert(entry_id{i}, a);
        arc.unpin(entry_id{i}, kNoEntry);
    };
    for (uint32_t i = 0; i < 4; ++i) put(i);
    arc.hit(entry_id{2});
    arc.hit(entry_id{3});  // T1 = {0, 1}, T2 = {2, 3}, p = 0: T1 is wanted
    arc.pin(entry_id{0});
    arc.pin(entry_id{1});
    CHECK(arc.victim(arc.admit(99, true)) == entry_id{2});
    arc.pin(entry_id{3});
    const auto before = arc.read_sizes();
    const admission a = arc.admit(98, true);
    CHECK(arc.victim(a) == kNoEntry);
    arc.refuse(a);
    const auto after = arc.read_sizes();
    CHECK(after.p == before.p);
    CHECK(after.b1 == before.b1);
    CHECK(after.b2 == before.b2);
}

#include <random>

#include "index_pair.hpp"
#include "support/seed.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

// A chain as an engine has them: block i of document d; documents 2 and 3 share their first blocks.
std::vector<uint64_t> chain(uint64_t document, uint64_t length) {
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < length; ++i) {
        const bool shared = document == 3 && i < 3;
        keys.push_back(1 + (shared ? 2 : document) * 8 + i);
    }
    return keys;
}

void random_step(index_pair& both, std::mt19937_64& random, uint32_t max_entries) {
    const auto below = [&random](uint64_t n) { return random() % n; };
    constexpr uint64_t kKeys = 6 * 8;
    const uint64_t key = 1 + below(kKeys), other = 1 + below(kKeys);
    switch (below(16)) {
        case 0:
        case 1:
        case 2: {  // a store of a chain, committed in any order
            const auto keys = chain(below(6), 1 + below(8));
            for (size_t i = 0; i < keys.size(); ++i)
                both.reserve(keys[i], i == 0 ? 0 : keys[i - 1]);
            const bool backwards = below(2) == 0;
            for (size_t i = 0; i < keys.size(); ++i) {
                const uint64_t at = keys[backwards ? keys.size() - 1 - i : i];
                below(8) == 0 ? both.abandon(at) : both.commit(at);
            }
            break;
        }
        case 3:
        case 4:
        case 5:
            both.pin(chain(below(6), 1 + below(8)), below(3) > 0);
            break;
        case 6:
        case 7:
        case 8:
        case 9:
            both.unpin(below(both.n_held() + 1), 1 + below(8), below(3) == 0);
            break;
        case 10: {
            auto keys = chain(below(6), 1 + below(8));
            std::reverse(keys.begin(), keys.end());
            both.touch(keys);
            break;
        }
        case 11:
            both.reserve(key, other);
            break;
        case 12:
            both.remove(key);
            both.remove_while_writing(other);
            break;
        case 13:
            both.evict_one();
            break;
        case 14:
            both.link(key, other);
            break;
        default: {
            const auto capacity = static_cast<uint32_t>(below(max_entries + 1));
            both.set_capacity(below(4) == 0 ? capacity : max_entries);
        }
    }
}

}  // namespace

TEST_CASE("the index agrees with the naive one over random operations") {
    for (uint64_t s = 0; s < 120; ++s) {
        const uint64_t seed_here = seed() * 1000 + s;
        std::mt19937_64 random(seed_here);
        const auto max_entries = static_cast<uint32_t>(1 + random() % 24);
        const kvo_policy_t kind = s % 2 == 0 ? KVO_POLICY_LRU : KVO_POLICY_ARC;
        INFO("seed " << seed_here << " entries " << max_entries << " policy " << kind);
        index_pair both(kind, max_entries);
        for (int step = 0; step < 400; ++step) {
            INFO("step " << step);
            random_step(both, random, max_entries);
            both.check(6 * 8);
        }
        // Without pins and capacity nothing may be left.
        both.unpin(0, both.n_held(), false);
        for (uint64_t key = 1; key <= 6 * 8; ++key) both.abandon(key);
        both.check(6 * 8);
        while (both.real().counts().resident > 0) both.evict_one();
        CHECK(both.real().counts().dead == 0);
    }
}

TEST_CASE("the random operations reach pinned orphans, refusals and dead entries") {
    uint64_t aside = 0, dead = 0, full_of_pins = 0;
    for (uint64_t s = 0; s < 40; ++s) {
        std::mt19937_64 random(seed() * 1000 + s);
        const auto max_entries = static_cast<uint32_t>(1 + random() % 24);
        index_pair both(KVO_POLICY_LRU, max_entries);
        for (int step = 0; step < 400; ++step) {
            random_step(both, random, max_entries);
            const index_counts c = both.real().counts();
            aside += both.model().aside.empty() ? 0u : 1u;
            dead += c.dead > 0 ? 1u : 0u;
            full_of_pins += c.pinned >= both.real().capacity() ? 1u : 0u;
        }
    }
    CHECK(aside > 20);
    CHECK(dead > 20);
    CHECK(full_of_pins > 20);
}

namespace {

constexpr uint32_t kVerbs = 6, kKeys = 3;

// Three keys of one chain, six verbs.
void small_step(index_pair& both, uint32_t code) {
    const uint64_t key = 1 + code % kKeys;
    switch (code / kKeys) {
        case 0:
            both.put(key, key - 1);
            break;
        case 1:
            both.put(key, 0);
            break;
        case 2:
            both.touch({{key}});
            break;
        case 3:
            both.pin({{key}}, false);
            break;
        case 4:
            both.unpin(key - 1, 1, false);
            break;
        default:
            both.remove(key);
    }
}

}  // namespace

TEST_CASE("every sequence of four small operations on two blocks ends as in the naive index") {
    constexpr uint32_t n_codes = kVerbs * kKeys;
    for (uint32_t sequence = 0; sequence < n_codes * n_codes * n_codes * n_codes; ++sequence) {
        const kvo_policy_t kind = sequence % 2 == 0 ? KVO_POLICY_LRU : KVO_POLICY_ARC;
        INFO("sequence " << sequence << " policy " << kind);
        index_pair both(kind, 2);
        both.put(1, 0);
        both.put(2, 1);
        for (uint32_t rest = sequence, step = 0; step < 4; ++step, rest /= n_codes) {
            small_step(both, rest % n_codes);
        }
        both.check(kKeys);
    }
}

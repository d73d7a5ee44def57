// LRU and ARC written down as the papers say them, with std::list and linear searches, pins
// included: the model that the real policies are fuzzed against.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <set>

namespace kvo::test {

struct naive_cache {
    virtual ~naive_cache() = default;
    // One access. true: hit. refused: a miss that found only pinned entries; nothing changed.
    virtual bool access(uint64_t key, bool* refused) = 0;
    std::set<uint64_t> pinned;
    uint64_t capacity = 0;

protected:
    using list = std::list<uint64_t>;  // front: oldest
    static bool has(const list& l, uint64_t k) {
        return std::find(l.begin(), l.end(), k) != l.end();
    }
    std::optional<uint64_t> oldest_free(const list& l) const {
        for (uint64_t k : l) {
            if (pinned.count(k) == 0) return k;
        }
        return std::nullopt;
    }
};

struct naive_lru final : naive_cache {
    list order;
    bool access(uint64_t key, bool* refused) override {
        *refused = false;
        if (has(order, key)) {
            order.remove(key);
            order.push_back(key);
            return true;
        }
        if (order.size() >= capacity) {
            const auto victim = oldest_free(order);
            if (!victim) {
                *refused = true;
                return false;
            }
            order.remove(*victim);
        }
        order.push_back(key);
        return false;
    }
};

struct naive_arc final : naive_cache {
    list t1, t2, b1, b2;
    double p = 0;

    bool replace(bool in_b2, bool ghost = true) {
        const auto n1 = static_cast<double>(t1.size());
        const bool from_t1 = !t1.empty() && ((in_b2 && n1 == p) || n1 > p);
        list* first = from_t1 ? &t1 : &t2;
        list* second = from_t1 ? &t2 : &t1;
        auto victim = oldest_free(*first);
        list* from = first;
        if (!victim) {
            victim = oldest_free(*second);
            from = second;
        }
        if (!victim) return false;
        from->remove(*victim);
        if (ghost) (from == &t1 ? b1 : b2).push_back(*victim);
        return true;
    }
    bool full() const { return t1.size() + t2.size() >= capacity; }

    bool access(uint64_t key, bool* refused) override {
        *refused = false;
        const auto c = static_cast<double>(capacity);
        if (has(t1, key) || has(t2, key)) {
            t1.remove(key);
            t2.remove(key);
            t2.push_back(key);
            return true;
        }
        const double n1 = static_cast<double>(b1.size()), n2 = static_cast<double>(b2.size());
        const bool in_b1 = has(b1, key), in_b2 = has(b2, key);
        const double p_before = p;
        if (in_b1) p = std::min(c, p + std::max(1.0, n2 / n1));
        if (in_b2) p = std::max(0.0, p - std::max(1.0, n1 / n2));
        if (full() && !replace(in_b2)) {
            p = p_before;
            *refused = true;
            return false;
        }
        b1.remove(key);
        b2.remove(key);
        (in_b1 || in_b2 ? t2 : t1).push_back(key);
        while (!b1.empty() && t1.size() + b1.size() > capacity) b1.pop_front();
        while (!b2.empty() && t1.size() + t2.size() + b1.size() + b2.size() > 2 * capacity) {
            b2.pop_front();
        }
        return false;
    }
};

}  // namespace kvo::test

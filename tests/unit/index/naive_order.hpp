// The policies' verbs over std::list, one for each of LRU and ARC, for the naive index. Entries are
// serial numbers that are never used twice; nothing here is fast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>

namespace kvo::test {

using serial = uint64_t;
using naive_list = std::list<uint64_t>;  // front: leaves first

inline bool has(const naive_list& l, uint64_t x) {
    return std::find(l.begin(), l.end(), x) != l.end();
}
inline std::optional<uint64_t> pop_front(naive_list* l) {
    if (l->empty()) return std::nullopt;
    const uint64_t x = l->front();
    l->pop_front();
    return x;
}

struct naive_order {
    virtual ~naive_order() = default;
    virtual void set_capacity(uint32_t capacity) = 0;
    virtual void hit(serial s) = 0;
    virtual void admit(uint64_t key) = 0;
    virtual std::optional<serial> victim() = 0;
    virtual void refuse() = 0;
    virtual void insert(serial s, uint64_t key) = 0;
    virtual void remove(serial s) = 0;
    virtual std::optional<serial> oldest() = 0;
    virtual naive_list& victims_of(serial s) = 0;

    void pin(serial s) { victims_of(s).remove(s); }
    void unpin(serial s, std::optional<serial> ancestor) {
        naive_list& l = victims_of(s);
        const auto behind = ancestor ? std::find(l.begin(), l.end(), *ancestor) : l.end();
        l.insert(behind, s);  // before end(): the newest
    }
};

struct naive_lru_order final : naive_order {
    naive_list victims;
    void set_capacity(uint32_t) override {}
    void hit(serial s) override {
        if (!has(victims, s)) return;
        victims.remove(s);
        victims.push_back(s);
    }
    void admit(uint64_t) override {}
    std::optional<serial> victim() override { return oldest(); }
    void refuse() override {}
    void insert(serial, uint64_t) override {}
    void remove(serial s) override { victims.remove(s); }
    std::optional<serial> oldest() override { return pop_front(&victims); }
    naive_list& victims_of(serial) override { return victims; }
};

struct naive_arc_order final : naive_order {
    explicit naive_arc_order(uint32_t max_entries)
        : capacity(max_entries), ghost_room(max_entries + 1) {}

    uint64_t capacity, ghost_room;
    naive_list t1, t2;               // those that may leave
    std::map<serial, bool> in_t2;    // all residents
    std::map<serial, uint64_t> key;  // of all residents
    naive_list b1, b2;               // keys
    double p = 0, p_before = 0;
    bool from_b1 = false, from_b2 = false;

    uint64_t size(bool second) const {
        return static_cast<uint64_t>(std::count_if(
            in_t2.begin(), in_t2.end(), [&](const auto& i) { return i.second == second; }));
    }
    void set_capacity(uint32_t c) override {
        capacity = c;
        p = std::min(p, static_cast<double>(c));
        trim();
    }
    void hit(serial s) override {
        if (in_t2.count(s) == 0) return;
        const bool may_leave = has(victims_of(s), s);
        victims_of(s).remove(s);
        in_t2[s] = true;
        if (may_leave) t2.push_back(s);
    }
    void admit(uint64_t k) override {
        p_before = p;
        from_b1 = has(b1, k);
        from_b2 = has(b2, k);
        const double n1 = static_cast<double>(b1.size()), n2 = static_cast<double>(b2.size());
        if (from_b1) p = std::min(static_cast<double>(capacity), p + std::max(1.0, n2 / n1));
        if (from_b2) p = std::max(0.0, p - std::max(1.0, n1 / n2));
    }
    std::optional<serial> victim() override {
        const double n1 = static_cast<double>(size(false));
        const bool first = n1 > 0 && (n1 > p || (from_b2 && n1 == p));
        for (bool second : {!first, first}) {
            if (auto s = pop_front(second ? &t2 : &t1)) {
                remember(key[*s], second);
                forget(*s);
                return s;
            }
        }
        return std::nullopt;
    }
    void refuse() override { p = p_before; }
    void insert(serial s, uint64_t k) override {
        b1.remove(k);
        b2.remove(k);
        in_t2[s] = from_b1 || from_b2;
        key[s] = k;
        trim();
    }
    void remove(serial s) override {
        if (in_t2.count(s) == 0) return;
        victims_of(s).remove(s);
        forget(s);
    }
    std::optional<serial> oldest() override {
        const bool first = !t1.empty() && (static_cast<double>(size(false)) > p || t2.empty());
        auto s = pop_front(first ? &t1 : &t2);
        if (s) forget(*s);
        return s;
    }
    naive_list& victims_of(serial s) override { return in_t2[s] ? t2 : t1; }

private:
    void forget(serial s) {
        in_t2.erase(s);
        key.erase(s);
    }
    void remember(uint64_t k, bool second) {
        naive_list& mine = second ? b2 : b1;
        naive_list& other = second ? b1 : b2;
        b1.remove(k);
        b2.remove(k);
        if (b1.size() + b2.size() == ghost_room) pop_front(other.empty() ? &mine : &other);
        mine.push_back(k);
    }
    void trim() {
        while (!b1.empty() && size(false) + b1.size() > capacity) b1.pop_front();
        while (!b2.empty() && in_t2.size() + b1.size() + b2.size() > 2 * capacity) b2.pop_front();
    }
};

}  // namespace kvo::test

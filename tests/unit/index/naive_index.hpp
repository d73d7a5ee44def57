// block_index written down as its header says, with maps and lists: the model that the real one is
// fuzzed against. An entry is a serial number; a key that comes back is a new entry.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/block_index.hpp"
#include "naive_order.hpp"

namespace kvo::test {

class naive_index {
public:
    struct item {
        uint64_t key = 0;
        entry_state state = entry_state::writing;
        uint32_t pins = 1;
        bool reused = false;
        bool orphan = false;
        std::optional<serial> parent;
        naive_list children;  // in the order in which they were linked
    };
    static constexpr int kAncestors = 256, kOrphanTries = 8;

    naive_index(kvo_policy_t kind, uint32_t max_entries) : capacity(max_entries) {
        if (kind == KVO_POLICY_ARC) {
            order = std::make_unique<naive_arc_order>(max_entries);
        } else {
            order = std::make_unique<naive_lru_order>();
        }
    }

    std::optional<serial> find(uint64_t key) const {
        for (const auto& [s, i] : items) {
            if (i.key == key && i.state != entry_state::dead) return s;
        }
        return std::nullopt;
    }
    // *left: who was evicted for it.
    std::optional<serial> reserve(uint64_t key, std::optional<serial> parent,
                                  std::optional<serial>* left) {
        if (capacity == 0) return std::nullopt;
        order->admit(key);
        if (items.size() >= capacity) {
            *left = first_orphan();
            if (*left) {
                order->remove(**left);
            } else {
                *left = order->victim();
            }
            if (!*left) {
                order->refuse();
                return std::nullopt;
            }
            leave(**left);
        }
        const serial s = next_serial++;
        items[s].key = key;
        if (parent) link(s, *parent);
        order->insert(s, key);
        return s;
    }
    void commit(serial s) {
        items[s].state = entry_state::ready;
        unpin(s);
    }
    void abandon(serial s) {
        if (items[s].state == entry_state::writing) {
            order->remove(s);
            unpublish(s);
        }
        unpin(s);
    }
    void remove(serial s) {
        order->remove(s);
        leave(s);
    }
    std::optional<serial> evict_one() {
        std::optional<serial> s = first_orphan();
        if (s) {
            order->remove(*s);
        } else {
            s = order->oldest();
        }
        if (s) leave(*s);
        return s;
    }
    void touch(serial s) {
        if (items[s].state == entry_state::dead) return;
        items[s].reused = true;
        order->hit(s);
    }
    void pin(serial s) {
        if (items[s].pins++ == 0) order->pin(s);
    }
    void unpin(serial s) {
        item& i = items[s];
        if (--i.pins > 0) return;
        if (i.state == entry_state::dead) {
            items.erase(s);
            return;
        }
        std::optional<serial> up = i.parent;
        for (int n = 1; n < kAncestors && up && !may_leave(*up); ++n) up = items[*up].parent;
        order->unpin(s, up && may_leave(*up) ? up : std::nullopt);
        if (i.orphan && !aside.empty()) {
            orphans.remove(s);
            aside.remove(s);
            orphans.push_front(s);
        }
    }
    void link(serial s, serial parent) {
        if (s == parent || items[s].parent == parent) return;
        let_go_of_parent(s);
        items[s].parent = parent;
        items[parent].children.push_back(s);
    }

    std::map<serial, item> items;  // dead ones that are pinned, too
    naive_list orphans, aside;
    uint32_t capacity;
    uint64_t orphaned_total = 0;
    std::unique_ptr<naive_order> order;

private:
    bool may_leave(serial s) const {
        const item& i = items.at(s);
        return i.pins == 0 && i.state == entry_state::ready;
    }
    std::optional<serial> first_orphan() {
        for (int n = 0; n < kOrphanTries && !orphans.empty(); ++n) {
            if (items[orphans.front()].pins == 0) return orphans.front();
            aside.push_back(orphans.front());
            orphans.pop_front();
        }
        return std::nullopt;
    }
    void let_go_of_parent(serial s) {
        orphans.remove(s);
        aside.remove(s);
        item& i = items[s];
        if (i.parent) items[*i.parent].children.remove(s);
        i.parent.reset();
        i.orphan = false;
    }
    void unpublish(serial s) {
        let_go_of_parent(s);
        item& i = items[s];
        for (serial child : i.children) {
            items[child].parent.reset();
            items[child].orphan = true;
            orphans.push_back(child);
            ++orphaned_total;
        }
        i.children.clear();
        i.state = entry_state::dead;
    }
    void leave(serial s) {
        unpublish(s);
        if (items[s].pins == 0) items.erase(s);
    }

    serial next_serial = 1;
};

}  // namespace kvo::test

// The real index and the naive one side by side: each operation is done in both, and everything
// that can be asked is compared.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "naive_index.hpp"
#include "replay.hpp"
#include "support/catch.hpp"

namespace kvo::test {

class index_pair final : index_owner {
public:
    index_pair(kvo_policy_t kind, uint32_t max_entries) : model_(kind, max_entries) {
        REQUIRE(block_index::create({max_entries, 1, kind}, *this, &real_) == KVO_OK);
    }

    // ---- what a caller may do; keys that are not there are passed over ----
    // The parent is held meanwhile, as a caller must.
    void reserve(uint64_t key, uint64_t parent_key) {
        if (model_.find(key)) return;
        const auto parent = model_.find(parent_key);
        const entry_id parent_entry = parent ? entry_[*parent] : kNoEntry;
        if (parent) {
            model_.pin(*parent);
            real_->pin(parent_entry);
        }
        std::optional<serial> left;
        const auto s = model_.reserve(key, parent, &left);
        released_.clear();
        const auto how = parent ? block_index::lineage::child : block_index::lineage::root;
        const entry_id e = real_->reserve(ns_id{0}, key_of(key), how, parent_entry);
        REQUIRE((e != kNoEntry) == s.has_value());
        if (left) check_gone(*left);
        if (s) entry_[*s] = e;
        if (parent) {
            model_.unpin(*parent);
            real_->unpin(parent_entry);
        }
    }
    void commit(uint64_t key) {
        for_state(key, entry_state::writing, [&](serial s) {
            model_.commit(s);
            real_->commit(entry_[s], 7);
        });
    }
    void abandon(uint64_t key) {
        for_state(key, entry_state::writing, [&](serial s) {
            model_.abandon(s);
            real_->abandon(entry_[s]);
        });
    }
    void put(uint64_t key, uint64_t parent_key) {
        reserve(key, parent_key);
        commit(key);
    }
    void remove(uint64_t key) {
        for_state(key, entry_state::ready, [&](serial s) {
            model_.remove(s);
            real_->remove(entry_[s], leave_reason::purged);
        });
    }
    // The store finds out later and lets go.
    void remove_while_writing(uint64_t key) {
        for_state(key, entry_state::writing, [&](serial s) {
            model_.remove(s);
            real_->remove(entry_[s], leave_reason::purged);
            REQUIRE(real_->state(entry_[s]) == entry_state::dead);
            model_.abandon(s);
            real_->abandon(entry_[s]);
        });
    }
    void link(uint64_t key, uint64_t parent_key) {
        const auto s = model_.find(key), parent = model_.find(parent_key);
        if (!s || !parent) return;
        model_.link(*s, *parent);
        real_->link(entry_[*s], entry_[*parent]);
    }
    void touch(std::span<const uint64_t> keys) {
        std::vector<entry_id> entries;
        for (uint64_t key : keys) {
            const auto s = model_.find(key);
            if (!s) continue;
            model_.touch(*s);
            entries.push_back(entry_[*s]);
        }
        real_->touch(entries);
    }
    void pin(std::span<const uint64_t> keys, bool touch_too) {
        std::vector<entry_id> entries;
        for (uint64_t key : keys) {
            const auto s = model_.find(key);
            if (!s || (model_.items[*s].state != entry_state::ready && touch_too)) continue;
            model_.pin(*s);
            held_.push_back(*s);
            entries.push_back(entry_[*s]);
        }
        if (touch_too) {
            for (size_t i = held_.size() - entries.size(); i < held_.size(); ++i)
                model_.touch(held_[i]);
            real_->pin_and_touch(entries);
        } else {
            real_->pin(entries);
        }
    }
    // The n pins at `from`, in the order in which they were taken or the other way round.
    void unpin(size_t from, size_t n, bool backwards) {
        from = std::min(from, held_.size());
        n = std::min(n, held_.size() - from);
        const auto begin = held_.begin() + static_cast<long>(from);
        std::vector<serial> let_go(begin, begin + static_cast<long>(n));
        held_.erase(begin, begin + static_cast<long>(n));
        if (backwards) std::reverse(let_go.begin(), let_go.end());
        std::vector<entry_id> entries;
        for (serial s : let_go) {
            entries.push_back(entry_[s]);
            model_.unpin(s);
        }
        real_->unpin(entries);
    }
    void evict_one() {
        released_.clear();
        const auto s = model_.evict_one();
        REQUIRE((real_->evict_one(leave_reason::shrunk) != kNoEntry) == s.has_value());
        if (s) check_gone(*s);
    }
    void set_capacity(uint32_t capacity) {
        model_.capacity = capacity;
        model_.order->set_capacity(capacity);
        real_->set_capacity(capacity);
    }
    size_t n_held() const { return held_.size(); }
    block_index& real() { return *real_; }
    const naive_index& model() const { return model_; }

    void check(uint64_t n_keys) {
        index_counts want;
        for (const auto& [s, item] : model_.items) check_item(s, item, &want);
        const index_counts got = real_->counts();
        REQUIRE(got.resident == want.resident);
        REQUIRE(got.writing == want.writing);
        REQUIRE(got.dead == want.dead);
        REQUIRE(got.pinned == want.pinned);
        REQUIRE(got.orphans == model_.orphans.size() + model_.aside.size());
        REQUIRE(got.orphaned_total == model_.orphaned_total);
        for (uint64_t key = 1; key <= n_keys; ++key) {
            const kvo_key_t k = key_of(key);
            entry_id e = kNoEntry;
            real_->find(ns_id{0}, std::span(&k, 1), std::span(&e, 1));
            const auto s = model_.find(key);
            REQUIRE(e == (s ? entry_[*s] : kNoEntry));
        }
    }

private:
    void on_unpublish(entry_id, leave_reason) override {}
    void on_release(entry_id e) override { released_.insert(e); }

    template <typename F>
    void for_state(uint64_t key, entry_state state, F f) {
        const auto s = model_.find(key);
        if (s && model_.items[*s].state == state) f(*s);
    }
    void check_gone(serial s) { REQUIRE(released_ == std::set<entry_id>{entry_[s]}); }
    void check_item(serial s, const naive_index::item& item, index_counts* sum) {
        const entry_id e = entry_[s];
        REQUIRE(real_->state(e) == item.state);
        REQUIRE(real_->pins(e) == item.pins);
        sum->resident += item.state == entry_state::ready ? 1u : 0u;
        sum->writing += item.state == entry_state::writing ? 1u : 0u;
        sum->dead += item.state == entry_state::dead ? 1u : 0u;
        sum->pinned += item.pins > 0 ? 1u : 0u;
        if (item.state == entry_state::dead) return;
        REQUIRE(real_->reused(e) == item.reused);
        REQUIRE(real_->is_orphan(e) == item.orphan);
        REQUIRE(real_->parent(e) == (item.parent ? entry_[*item.parent] : kNoEntry));
        entry_id child = real_->first_child(e);
        for (serial c : item.children) {
            REQUIRE(child == entry_[c]);
            child = real_->next_sibling(child);
        }
        REQUIRE(child == kNoEntry);
    }

    naive_index model_;
    std::unique_ptr<block_index> real_;
    std::map<serial, entry_id> entry_;
    std::vector<serial> held_;  // one for each pin taken
    std::set<entry_id> released_;
};

}  // namespace kvo::test

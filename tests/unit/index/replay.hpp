// Drives a policy or the index with an access sequence and counts hits, for comparison with
// reference counts made by other programs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "index/block_index.hpp"
#include "index/policy.hpp"

namespace kvo::test {

// The bare policy: dense ids, no parents, every miss admitted.
class flat_replay {
public:
    flat_replay(kvo_policy_t kind, uint32_t capacity, uint32_t n_ids)
        : policy_(make_policy(kind, capacity)),
          entry_of_(n_ids, UINT32_MAX),
          id_of_(capacity),
          free_(capacity) {
        policy_->set_capacity(capacity);
        for (uint32_t i = 0; i < capacity; ++i) free_[i] = capacity - 1 - i;
    }
    bool access(uint32_t id) {
        if (entry_of_[id] != UINT32_MAX) {
            policy_->hit(entry_id{entry_of_[id]});
            return true;
        }
        const admission a = policy_->admit(digest(id), free_.empty());
        if (free_.empty()) {
            const uint32_t out = raw(policy_->victim(a));
            entry_of_[id_of_[out]] = UINT32_MAX;
            free_.push_back(out);
        }
        const uint32_t e = free_.back();
        free_.pop_back();
        policy_->insert(entry_id{e}, a);
        policy_->unpin(entry_id{e}, kNoEntry);
        entry_of_[id] = e;
        id_of_[e] = id;
        return false;
    }
    policy& rules() { return *policy_; }

private:
    static uint64_t digest(uint32_t id) { return (uint64_t{id} + 1) * 0x9E3779B97F4A7C15u; }
    std::unique_ptr<policy> policy_;
    std::vector<uint32_t> entry_of_, id_of_, free_;
};

struct no_owner final : index_owner {
    void on_unpublish(entry_id, leave_reason) override { ++n_out; }
    void on_release(entry_id) override {}
    uint64_t n_out = 0;
};

inline kvo_key_t key_of(uint64_t id) {
    kvo_key_t key{};
    for (int i = 0; i < 8; ++i) key.bytes[i] = static_cast<uint8_t>(id >> (8 * i));
    return key;
}

// Request by request through the index: the leading run of resident blocks counts, then all blocks
// are touched or inserted from last to first. chained: with parent links, as the cache does it
// (resident ones pinned while new ones are reserved in chain order); else each key on its own.
class prefix_replay {
public:
    prefix_replay(kvo_policy_t kind, uint32_t capacity, bool chained) : chained_(chained) {
        (void)block_index::create({capacity, 1, kind}, owner_, &index_);
    }
    uint64_t request(std::span<const uint32_t> ids) {
        keys_.clear();
        for (uint32_t id : ids) keys_.push_back(key_of(id));
        found_.resize(ids.size());
        find();
        uint64_t hits = 0;
        while (hits < ids.size() && found_[hits] != kNoEntry) ++hits;
        if (chained_) {
            store_chain();
        } else {
            store_one_by_one();
        }
        return hits;
    }
    block_index& index() { return *index_; }

private:
    void find() {
        for (size_t i = 0; i < keys_.size(); i += kKeysPerLock) {
            const size_t n = std::min<size_t>(kKeysPerLock, keys_.size() - i);
            index_->find(ns_id{0}, std::span(keys_).subspan(i, n), std::span(found_).subspan(i, n));
        }
    }
    void store_one_by_one() {
        for (size_t i = keys_.size(); i-- > 0;) {
            entry_id e;
            index_->find(ns_id{0}, std::span(&keys_[i], 1), std::span(&e, 1));
            if (e != kNoEntry) {
                index_->touch(e);
            } else {
                e = index_->reserve(ns_id{0}, keys_[i], block_index::lineage::root, kNoEntry);
                index_->commit(e, 0);
            }
        }
    }
    void store_chain() {
        std::vector<bool> is_new(keys_.size(), false);
        for (entry_id e : found_) {
            if (e != kNoEntry) index_->pin(e);
        }
        entry_id parent = kNoEntry;
        size_t n = 0;
        for (; n < keys_.size(); ++n) {
            if (found_[n] == kNoEntry) {
                const auto how = n == 0 ? block_index::lineage::root : block_index::lineage::child;
                found_[n] = index_->reserve(ns_id{0}, keys_[n], how, parent);
                if (found_[n] == kNoEntry) break;
                is_new[n] = true;
            } else if (n > 0) {
                index_->link(found_[n], parent);
            }
            parent = found_[n];
        }
        for (size_t i = found_.size(); i-- > 0;) {
            if (found_[i] == kNoEntry || is_new[i]) continue;
            index_->touch(found_[i]);
            index_->unpin(found_[i]);
        }
        for (size_t i = 0; i < n; ++i) {
            if (is_new[i]) index_->commit(found_[i], 0);
        }
    }

    bool chained_;
    no_owner owner_;
    std::unique_ptr<block_index> index_;
    std::vector<kvo_key_t> keys_;
    std::vector<entry_id> found_;
};

}  // namespace kvo::test

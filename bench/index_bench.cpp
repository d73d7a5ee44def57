// The index alone, after churn. match: find, pin, touch and unpin of 128 keys of a resident chain
// against a bare find() of another such chain, taken in turn in one loop; the counter `ratio` is
// the one by the other. evict+insert: find, evict, reserve, set the slot, commit, a chain of 128
// new blocks at a time, with none or half of the blocks pinned. One thread; the workloads are
// seeded and the same in every run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "index/block_index.hpp"
#include "timing.hpp"

namespace {

using namespace kvo;

constexpr ns_id kNs{0};
constexpr uint32_t kBatch = 128;
using bench::clock_type;
using bench::median;

double ns_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::nano>(clock_type::now() - begin).count();
}

// Keys as a hash would make them: all 32 bytes differ from block to block.
kvo_key_t key_of(uint64_t chain, uint32_t block) {
    kvo_key_t key;
    uint64_t x = chain * 0x9E3779B97F4A7C15u + block;
    for (int word = 0; word < 4; ++word) {
        x += 0x9E3779B97F4A7C15u;
        uint64_t z = x;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        std::memcpy(key.bytes + 8 * word, &z, sizeof z);
    }
    return key;
}

// Owns the slots as a cache does: a stack of free ones.
class slot_stack final : public index_owner {
public:
    void give(slot_id slot) { free_.push_back(slot); }
    slot_id take() {
        const slot_id slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void on_unpublish(entry_id, leave_reason) override { ++n_evicted; }
    void on_release(entry_id e) override { free_.push_back(index->slot(e, 0)); }

    block_index* index = nullptr;
    uint64_t n_evicted = 0;

private:
    std::vector<slot_id> free_;
};

struct chain_batch {
    uint64_t chain;
    uint32_t first;  // block in the chain
};

// An index in its working state: chains of 1 to 1,024 blocks stored, some looked up again, twice as
// many blocks stored as there is room for.
class worn_index {
public:
    worn_index(kvo_policy_t kind, uint32_t capacity) : capacity_(capacity) {
        if (block_index::create({capacity, 1, kind}, owner_, &index_) != KVO_OK) std::abort();
        owner_.index = index_.get();
        for (uint32_t i = capacity; i-- > 0;) owner_.give(slot_id{i});
        std::mt19937_64 random(7);
        uint64_t stored = 0;
        while (stored < uint64_t{3} * capacity) {
            const uint32_t most = std::min<uint32_t>(1024, capacity / 16);
            const auto length = static_cast<uint32_t>(1 + random() % most);
            chains_.push_back(length);
            store_chain(chains_.size() - 1, length);
            stored += length;
            const uint64_t again =
                chains_.size() - 1 -
                random() % std::min<uint64_t>(chains_.size(), capacity / 512 + 1);
            use_chain(again);
        }
    }

    void store_chain(uint64_t chain, uint32_t length) {
        parent_ = kNoEntry;
        for (uint32_t first = 0; first < length; first += kBatch) {
            make_keys(chain, first, std::min(kBatch, length - first));
            store_keys();
        }
    }
    void make_keys(uint64_t chain, uint32_t first, uint32_t n) {
        keys_.resize(n);
        found_.resize(n);
        for (uint32_t i = 0; i < n; ++i) keys_[i] = key_of(chain, first + i);
    }
    // What a store does in the index: looks the keys up, reserves the absent ones, and commits them
    // when their copies are over.
    void store_keys() {
        index_->find(kNs, keys_, found_);
        const entry_id above = parent_;
        if (above != kNoEntry) index_->pin(above);
        for (size_t i = 0; i < keys_.size(); ++i) {
            const auto how =
                parent_ == kNoEntry ? block_index::lineage::root : block_index::lineage::child;
            found_[i] = index_->reserve(kNs, keys_[i], how, parent_);
            if (found_[i] == kNoEntry) std::abort();
            index_->set_slot(found_[i], 0, owner_.take());
            parent_ = found_[i];
        }
        for (entry_id e : found_) index_->commit(e, 1);
        if (above != kNoEntry) index_->unpin(above);
    }
    void start_chain() { parent_ = kNoEntry; }

    // The leading blocks that are here: pinned, touched, unpinned, in the order in which the cache
    // does it.
    void use_chain(uint64_t chain) {
        for (uint32_t first = 0; first < chains_[chain]; first += kBatch) {
            make_keys(chain, first, std::min(kBatch, chains_[chain] - first));
            probe();
            while (!found_.empty() && found_.back() == kNoEntry) found_.pop_back();
            if (std::count(found_.begin(), found_.end(), kNoEntry) == 0) take_and_let_go();
        }
    }
    void probe() { index_->find(kNs, keys_, found_); }
    void take_and_let_go() {
        index_->pin_and_touch(found_);
        index_->unpin(found_);
    }

    // Every stretch of kBatch blocks that is resident as a whole, those of a chain in its order,
    // the chains shuffled.
    std::vector<chain_batch> resident_batches() {
        std::vector<uint64_t> order(chains_.size());
        for (uint64_t chain = 0; chain < order.size(); ++chain) order[chain] = chain;
        std::shuffle(order.begin(), order.end(), std::mt19937_64(11));
        std::vector<chain_batch> out;
        for (const uint64_t chain : order) {
            for (uint32_t first = 0; first + kBatch <= chains_[chain]; first += kBatch) {
                make_keys(chain, first, kBatch);
                probe();
                if (std::count(found_.begin(), found_.end(), kNoEntry) > 0) break;
                out.push_back({chain, first});
            }
        }
        return out;
    }
    // Pins whole stretches until n blocks are pinned.
    void pin_blocks(uint32_t n) {
        for (const chain_batch& b : resident_batches()) {
            if (index_->counts().pinned >= n) return;
            make_keys(b.chain, b.first, kBatch);
            probe();
            for (entry_id e : found_) index_->pin(e);
        }
    }
    block_index& index() { return *index_; }
    slot_stack& owner() { return owner_; }

private:
    uint32_t capacity_;
    slot_stack owner_;
    std::unique_ptr<block_index> index_;
    std::vector<uint32_t> chains_;  // length of each
    std::vector<kvo_key_t> keys_;
    std::vector<entry_id> found_;
    entry_id parent_ = kNoEntry;
};

void match(benchmark::State& state, kvo_policy_t kind) {
    worn_index worn(kind, static_cast<uint32_t>(state.range(0)));
    const auto batches = worn.resident_batches();
    std::vector<double> probe_ns, match_ns;
    // Two walks over all of them, half of the way apart.
    size_t probed = 0, matched = batches.size() / 2;
    const auto make_next = [&](size_t* at) {
        const chain_batch& b = batches[(*at)++ % batches.size()];
        worn.make_keys(b.chain, b.first, kBatch);
    };
    for (auto _ : state) {
        make_next(&probed);
        auto begin = clock_type::now();
        worn.probe();
        probe_ns.push_back(ns_since(begin));
        make_next(&matched);
        begin = clock_type::now();
        worn.probe();
        worn.take_and_let_go();
        match_ns.push_back(ns_since(begin));
        state.SetIterationTime(match_ns.back() * 1e-9);
    }
    state.SetItemsProcessed(state.iterations() * kBatch);
    state.counters["probe_ns_per_key"] = median(probe_ns) / kBatch;
    state.counters["match_ns_per_key"] = median(match_ns) / kBatch;
    state.counters["ratio"] = median(match_ns) / median(probe_ns);
}

void evict_insert(benchmark::State& state, kvo_policy_t kind) {
    const auto capacity = static_cast<uint32_t>(state.range(0));
    worn_index worn(kind, capacity);
    if (state.range(1) > 0)
        worn.pin_blocks(
            static_cast<uint32_t>(capacity / 100 * static_cast<uint64_t>(state.range(1))));
    const uint64_t before = worn.owner().n_evicted;
    std::vector<double> ns;
    uint64_t chain = uint64_t{1} << 40;
    uint32_t in_chain = 0;
    for (auto _ : state) {
        if (in_chain == 4) {
            ++chain;
            in_chain = 0;
        }
        if (in_chain == 0) worn.start_chain();
        worn.make_keys(chain, in_chain++ * kBatch, kBatch);
        const auto begin = clock_type::now();
        worn.store_keys();
        ns.push_back(ns_since(begin));
        state.SetIterationTime(ns.back() * 1e-9);
    }
    const auto stored = static_cast<uint64_t>(state.iterations()) * kBatch;
    if (worn.owner().n_evicted - before != stored) state.SkipWithError("not every insert evicted");
    state.SetItemsProcessed(static_cast<int64_t>(stored));
    double sum = 0;
    for (double t : ns) sum += t;
    state.counters["mean_us_per_block"] = sum / static_cast<double>(stored) * 1e-3;
    state.counters["median_us_per_block"] = median(ns) / kBatch * 1e-3;
}

}  // namespace

BENCHMARK_CAPTURE(match, lru, KVO_POLICY_LRU)->Arg(1'000'000)->UseManualTime()->Iterations(20'000);
BENCHMARK_CAPTURE(match, arc, KVO_POLICY_ARC)->Arg(1'000'000)->UseManualTime()->Iterations(20'000);
BENCHMARK_CAPTURE(evict_insert, lru, KVO_POLICY_LRU)
    ->ArgNames({"blocks", "pinned_percent"})
    ->ArgsProduct({{10'000, 1'000'000, 10'000'000}, {0, 50}})
    ->UseManualTime()
    ->Iterations(10'000);
BENCHMARK_CAPTURE(evict_insert, arc, KVO_POLICY_ARC)
    ->ArgNames({"blocks", "pinned_percent"})
    ->ArgsProduct({{10'000, 1'000'000, 10'000'000}, {0, 50}})
    ->UseManualTime()
    ->Iterations(10'000);

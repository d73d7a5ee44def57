#include "commands/hit_counter.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "index/policy.hpp"

namespace kvo::tools {
namespace {

// A bijection, so that different blocks never share a ghost.
uint64_t ghost_key_of(uint32_t block) {
    uint64_t x = block + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

// A cache that holds block numbers only.
class bare_cache {
public:
    bare_cache(kvo_policy_t kind, uint32_t capacity, uint32_t unique_blocks)
        : policy_(make_policy(kind, capacity)),
          entry_of_block_(unique_blocks, kNoEntry),
          block_of_entry_(capacity) {
        policy_->set_capacity(capacity);
    }

    bool holds(uint32_t block) const { return entry_of_block_[block] != kNoEntry; }

    bool access(uint32_t block) {
        if (holds(block)) {
            policy_->hit(entry_of_block_[block]);
            return true;
        }
        const bool full = used_ == block_of_entry_.size();
        const admission decision = policy_->admit(ghost_key_of(block), full);
        entry_id entry{used_};
        if (full) {
            entry = policy_->victim(decision);
            entry_of_block_[block_of_entry_[raw(entry)]] = kNoEntry;
        } else {
            ++used_;
        }
        policy_->insert(entry, decision);
        policy_->unpin(entry, kNoEntry);
        block_of_entry_[raw(entry)] = block;
        entry_of_block_[block] = entry;
        return false;
    }

private:
    std::unique_ptr<policy> policy_;
    std::vector<entry_id> entry_of_block_;
    std::vector<uint32_t> block_of_entry_;
    uint32_t used_ = 0;
};

// Prompt tokens in the block at this place of a request; the last one may be partial.
uint64_t tokens_at(uint64_t place, uint64_t input_tokens, uint32_t block_tokens) {
    const uint64_t before = place * block_tokens;
    return before < input_tokens ? std::min<uint64_t>(block_tokens, input_tokens - before) : 0;
}

}  // namespace

hit_counts count_hits(const trace::sequence& sequence, const hit_question& question,
                      const std::function<void(uint64_t done, uint64_t total)>& on_progress) {
    // More room than there are different blocks changes nothing.
    const uint32_t unique = std::max(sequence.info.unique_blocks, 1U);
    const auto capacity = static_cast<uint32_t>(std::min<uint64_t>(question.blocks, unique));
    bare_cache cache(question.policy, capacity, unique);
    hit_counts counts;
    for (size_t r = 0; r < sequence.requests.size(); ++r) {
        const std::span<const uint32_t> ids = sequence.ids_of(r);
        const auto count_hit = [&](size_t place) {
            ++counts.hits;
            counts.hit_tokens +=
                tokens_at(place, sequence.requests[r].input_tokens, sequence.info.block_tokens);
        };
        if (question.mode == hit_mode::prefix) {
            for (size_t i = 0; i < ids.size() && cache.holds(ids[i]); ++i) count_hit(i);
            for (size_t i = ids.size(); i-- > 0;) cache.access(ids[i]);
        } else {
            for (size_t i = 0; i < ids.size(); ++i) {
                if (cache.access(ids[i])) count_hit(i);
            }
        }
        if (on_progress) on_progress(r + 1, sequence.requests.size());
    }
    return counts;
}

}  // namespace kvo::tools

#include "serve/block_pool.hpp"

#include <algorithm>

namespace engine {

size_t block_pool::content_hash::operator()(const content& c) const {
    uint64_t h = c.chain * 0x9E3779B97F4A7C15u;
    for (uint32_t token : c.tokens) h = (h ^ token) * 0x100000001B3u;
    return h ^ (h >> 29);
}

block_pool::block_pool(uint32_t n_blocks, uint32_t block_tokens, bool reuse)
    : block_tokens_(block_tokens), reuse_(reuse), blocks_(n_blocks) {
    for (uint32_t i = n_blocks; i-- > 0;) free_.push_back(i);
}

void block_pool::reference(uint32_t id) {
    block& b = blocks_[id];
    if (b.references++ == 0 && b.holds != nullptr) unused_.erase(b.place);
}

void block_pool::forget_block(uint32_t id) {
    block& b = blocks_[id];
    if (b.holds == nullptr) return;
    const content key = *b.holds;  // erase must not be handed a reference into the map
    b.holds = nullptr;
    known_.erase(key);
}

block_pool::prefix block_pool::match(std::span<const uint32_t> tokens) {
    prefix result;
    if (!reuse_ || tokens.empty()) return result;
    const size_t n_whole = (tokens.size() - 1) / block_tokens_;
    for (size_t i = 0; i < n_whole; ++i) {
        const auto part = tokens.subspan(i * block_tokens_, block_tokens_);
        const auto it = known_.find({result.chain, {part.begin(), part.end()}});
        if (it == known_.end()) break;
        reference(it->second.block);
        result.blocks.push_back(it->second.block);
        result.chain = it->second.chain;
    }
    return result;
}

std::optional<std::vector<uint32_t>> block_pool::allocate(uint32_t n) {
    if (n > n_available()) return std::nullopt;
    std::vector<uint32_t> result;
    result.reserve(n);
    while (result.size() < n) {
        if (free_.empty()) {
            const uint32_t id = unused_.front();
            unused_.pop_front();
            forget_block(id);
            free_.push_back(id);
        }
        result.push_back(free_.back());
        free_.pop_back();
        blocks_[result.back()].references = 1;
    }
    return result;
}

uint64_t block_pool::publish(uint32_t id, uint64_t chain, std::span<const uint32_t> tokens) {
    if (!reuse_) return 0;
    const auto [it, is_new] =
        known_.try_emplace({chain, {tokens.begin(), tokens.end()}}, found{id, last_chain_ + 1});
    if (is_new) {
        ++last_chain_;
        blocks_[id].holds = &it->first;
    }
    return it->second.chain;
}

void block_pool::release(std::span<const uint32_t> ids) {
    for (size_t i = ids.size(); i-- > 0;) {
        block& b = blocks_[ids[i]];
        if (--b.references > 0) continue;
        if (b.holds != nullptr) {
            b.place = unused_.insert(unused_.end(), ids[i]);
        } else {
            free_.push_back(ids[i]);
        }
    }
}

void block_pool::forget() {
    known_.clear();
    for (uint32_t id : unused_) free_.push_back(id);
    unused_.clear();
    for (block& b : blocks_) b.holds = nullptr;
}

}  // namespace engine

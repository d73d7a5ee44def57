// The device blocks of the engine and its own prefix cache in them: which blocks are free, which are in
// use, and which hold a finished block of some prefix that nobody uses right now. Owns numbers only; the
// KV bytes are the caller's. One thread (the scheduler's).
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace engine {

class block_pool {
public:
    // reuse: keep finished blocks for later requests with the same prefix.
    block_pool(uint32_t n_blocks, uint32_t block_tokens, bool reuse);

    // A prefix held in blocks, all referenced. chain: the name of its content, 0 for the empty prefix.
    struct prefix {
        std::vector<uint32_t> blocks;
        uint64_t chain = 0;
    };
    // The longest run of whole blocks of tokens[0..n-1) that is here (one token is always left over).
    prefix match(std::span<const uint32_t> tokens);
    // n unreferenced blocks, evicting unused prefix blocks as needed; none when there are too few.
    std::optional<std::vector<uint32_t>> allocate(uint32_t n);
    // The block now holds these tokens, after the prefix named `chain`. Returns the name of the longer
    // prefix. The first block with the same content is the one that later requests find.
    uint64_t publish(uint32_t block, uint64_t chain, std::span<const uint32_t> tokens);
    // Drops references, last block first, so that the tail of a prefix leaves before its head.
    void release(std::span<const uint32_t> blocks);
    // Forgets all prefixes; referenced blocks stay in use.
    void forget();

    uint32_t n_available() const { return static_cast<uint32_t>(free_.size() + unused_.size()); }
    uint32_t n_blocks() const { return static_cast<uint32_t>(blocks_.size()); }

private:
    struct content {
        uint64_t chain;
        std::vector<uint32_t> tokens;
        bool operator==(const content&) const = default;
    };
    struct content_hash {
        size_t operator()(const content& c) const;
    };
    struct found {
        uint32_t block;
        uint64_t chain;  // name of the prefix that ends with this block
    };
    struct block {
        uint32_t references = 0;
        const content* holds = nullptr;  // key in known_, while this block is the one to find
        std::list<uint32_t>::iterator place;
    };

    void reference(uint32_t id);
    void forget_block(uint32_t id);

    uint32_t block_tokens_;
    bool reuse_;
    uint64_t last_chain_ = 0;
    std::vector<block> blocks_;
    std::vector<uint32_t> free_;
    std::list<uint32_t> unused_;  // hold a prefix, no references; front leaves first
    std::unordered_map<content, found, content_hash> known_;
};

}  // namespace engine

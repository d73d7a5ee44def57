// What the sequence level consists of. The files of this folder share it, one per topic. Its parts
// guard themselves; no lock of this level is held while the cache is called, except
// `scratch_mutex`, which only long lookups take and nothing inside the cache ever asks for.
#pragma once

#include <mutex>
#include <span>

#include "sequence/block_key.hpp"
#include "sequence/context_store.hpp"
#include "sequence/identity_store.hpp"
#include "sequence/op_watches.hpp"
#include "sequence/sequence_record.hpp"
#include "sequence/sequences.hpp"
#include "sequence/token_pages.hpp"

namespace kvo {

constexpr uint32_t kBlocksPerStore = 256;  // most blocks of one store op
constexpr uint32_t kBlocksOnStack = 512;   // longer lookups use the scratch room

// Some consecutive blocks of one sequence, laid out for a call of the cache.
struct block_list {
    uint32_t first = 0;
    std::span<kvo_key_t> keys;
    std::span<uint32_t> pages;  // those that hold the blocks; at least one a block is always enough
    std::span<context_id> contexts;
};

template <uint32_t N>
struct block_list_room {
    kvo_key_t keys[N];
    uint32_t pages[N];
    context_id contexts[N];
    block_list list(uint32_t first, uint32_t n) {
        return {first, {keys, n}, {pages, n}, {contexts, n}};
    }
};

struct sequences::state {
    state(cache& blocks, key_filter weaken);

    cache& blocks;
    const kvo_config_t& config;
    const key_filter weaken;
    const uint32_t block_tokens;
    uint32_t lag_tokens = 0;  // the longest of any group
    uint32_t n_groups = 0;
    bool started = false;

    region memory;
    context_store contexts;
    token_pages pages;
    identity_store identities{contexts};
    op_watches watches;
    sequence_table table;
    std::mutex scratch_mutex;
    block_list scratch;

    // ---- tokens ----
    // All or none. When there is no room, the sequence is blind from then on.
    status append(sequence_record& r, std::span<const uint32_t> tokens);
    // The prompt as lookup gives it: what is known already must be equal.
    status set_prompt(sequence_record& r, std::span<const uint32_t> tokens);
    void hash_blocks(sequence_record& r, uint32_t first, uint32_t end);
    void fill(const sequence_record& r, const block_list& list);
    kvo_key_t key_of(const sequence_record& r, uint32_t block);
    void cut_tokens(sequence_record& r, uint32_t n_tokens);
    void cut_progress(sequence_record& r, uint32_t n_tokens);
    uint32_t whole_blocks(uint32_t n_tokens) const { return n_tokens / block_tokens; }

    // ---- lookup and load ----
    status find_hit(sequence_record& r, uint32_t local, const block_list& list,
                    uint64_t pending_until_ns, kvo_match_t* found);
    status look_again(sequence_record& r, uint32_t end, bool* is_answered, kvo_match_t* found);
    void drop_hit(sequence_record& r);
    // What was computed is not loaded any more: its pins are for others.
    void pass_hit(sequence_record& r) {
        if (r.hit.ticket.value != 0 && r.n_computed > r.hit.local_blocks * block_tokens) drop_hit(r);
    }
    bool is_untouched(const sequence_record& r) const {  // nothing on the device is of an earlier life
        return r.n_computed == 0 && r.loaded_end == 0 && r.loads.size() == 0;
    }

    // ---- stores ----
    uint32_t n_storable_blocks(const sequence_record& r) const;
    status offer(sequence_record& r, std::span<const kvo_blocks_t> lists, void* stream,
                 shared_gate* gate = nullptr);
    status offer_run(sequence_record& r, uint32_t n, std::span<const kvo_blocks_t> lists,
                     void* stream, shared_gate* gate, bool* more);
    // The same lists from host block `first` on, for n host blocks. KVO_E_RANGE if they are too
    // short.
    status sub_lists(std::span<const kvo_blocks_t> lists, uint32_t first, uint32_t n,
                     std::span<kvo_blocks_t> out) const;
    status check_all_groups(std::span<const kvo_blocks_t> lists, uint32_t n) const;
    // Takes in how loads and stores of the sequence have ended.
    void settle(sequence_record& r);
    void limit_loads(sequence_record& r, uint32_t n_tokens);
    void leave_device(
        sequence_record& r);  // the device copy is gone: pins, watches and progress with it
};

// Entering a hook: the record of a handle, for this thread alone until the end of the scope.
class hook {
public:
    hook(sequences::state& s, kvo_seq_t seq);
    ~hook() {
        if (record_ != nullptr) record_->inside.store(false, std::memory_order_release);
    }
    hook(const hook&) = delete;
    hook& operator=(const hook&) = delete;
    status result() const { return result_; }
    sequence_record& record() const { return *record_; }
    void ended() { record_ = nullptr; }

private:
    sequence_record* record_ = nullptr;
    status result_ = KVO_OK;
};

// How the cache asks for the exact check of the blocks of one call.
class block_check final : public identity {
public:
    // end: the block before the list, as far as it is known; moves on to the last one settled.
    block_check(sequences::state& s, const block_list& list, known_entry* end)
        : s_(s), list_(list), end_(end) {}
    bool same(entry_id e, uint32_t i) const override { return s_.identities.same(e, block(i)); }
    // Room for salts and extras was found when they were given.
    bool keep(entry_id e, uint32_t i) override {
        s_.identities.keep(e, block(i));
        return true;
    }
    void settled(entry_id e, uint32_t i) override {
        *end_ = {list_.first + i + 1, e, s_.identities.serial(e)};
    }
    bool is_parent(entry_id e) const override {
        return end_->n_blocks == list_.first && end_->entry == e && end_->serial != 0 &&
               end_->serial == s_.identities.serial(e);
    }

private:
    known_block block(uint32_t i) const {
        const uint32_t index = list_.first + i, per_page = s_.pages.blocks_per_page();
        const uint32_t page = list_.pages[index / per_page - list_.first / per_page];
        return {s_.pages.tokens(page, index % per_page), index, list_.contexts[i]};
    }
    sequences::state& s_;
    const block_list& list_;
    known_entry* end_;
};

}  // namespace kvo

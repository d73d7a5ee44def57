// A cache with its sequence level over the step device, and a device pool whose content can be
// checked: what a block holds is computed from the block before it as it lies in device memory and
// from the real input of each token, so that one wrong byte spoils everything behind it. One
// thread; nothing moves on the device until settle() or run().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "sequence/sequences.hpp"
#include "support/catch.hpp"
#include "support/step_device.hpp"

namespace kvo::test {

using tokens_t = std::vector<uint32_t>;

struct rig_setup {
    uint32_t blocks = 64;           // capacity, to the block
    uint32_t n_device_blocks = 64;  // in units of the smallest group block
    uint32_t ratio = 1;             // device blocks of a host block
    uint32_t second_group_lag = 0;  // > 0: a second group with that lag
    uint64_t seed = 1;
    key_filter weaken{};
    std::function<void(kvo_config_t*)> adjust;
};

class seq_rig {
public:
    static constexpr uint32_t kBlock = 16;
    static constexpr uint32_t kPartBytes = 64;

    explicit seq_rig(const rig_setup& s = {});
    ~seq_rig();

    // ---- the engine's side ----
    // Queues the computing of tokens [from, to); `input` is what the model sees for each token.
    void compute(const std::vector<uint32_t>& table, const std::vector<uint64_t>& input,
                 uint32_t from, uint32_t to, void* on = nullptr);
    void compute(const std::vector<uint32_t>& table, const tokens_t& input, uint32_t from,
                 uint32_t to) {
        compute(table, std::vector<uint64_t>(input.begin(), input.end()), from, to);
    }
    void copy_block(uint32_t from, uint32_t to);  // queues it
    // Leading tokens whose blocks hold what they should, looking at memory now; whole device
    // blocks, and the partial one at `n`.
    uint32_t n_right(const std::vector<uint32_t>& table, const std::vector<uint64_t>& input,
                     uint32_t n) const;
    uint32_t n_right(const std::vector<uint32_t>& table, const tokens_t& input, uint32_t n) const {
        return n_right(table, std::vector<uint64_t>(input.begin(), input.end()), n);
    }
    void scribble(const std::vector<uint32_t>& table);  // now
    void scribble_later(const std::vector<uint32_t>& table);  // queues it
    uint32_t device_block_tokens() const { return kBlock / setup.ratio; }
    std::vector<kvo_blocks_t> lists(const std::vector<uint32_t>& table) const;
    std::vector<uint32_t> table_for(uint32_t first_device_block, uint32_t n_tokens) const;

    // ---- the library's side ----
    void settle();
    kvo_completion_t take(kvo_op_t op);
    kvo_seq_t begin(const std::string& salt = "", uint32_t flags = 0, kvo_ns_t ns = {});
    struct found {
        uint32_t n = 0;
        kvo_lookup_state_t state = KVO_LOOKUP_MISS;
        status result = KVO_OK;
    };
    found lookup(kvo_seq_t seq, const tokens_t& tokens, uint32_t n_local = 0);
    kvo_op_t prefill(kvo_seq_t seq, const std::vector<uint32_t>& table, uint32_t n,
                     status* result = nullptr);
    status prefilled(kvo_seq_t seq, const std::vector<uint32_t>& table, uint32_t n_computed);
    // A request from begin to end that computes everything it can't reuse; returns tokens reused.
    uint32_t run_request(const tokens_t& tokens, uint32_t first_device_block = 0,
                         const std::string& salt = "");
    // How many tokens a new sequence with these tokens and one more could have; leaves nothing
    // behind.
    uint32_t stored(const tokens_t& tokens, const std::string& salt = "");
    kvo_seq_info_t info(kvo_seq_t seq);
    kvo_stats_t stats();
    // Sequences, tickets, pins, ops, fences, reservations, token room and watches: "" when all are
    // back.
    std::string left_over();

    rig_setup setup;
    kvo_config_t config = KVO_CONFIG_INIT;
    step_device device;
    device_table calls;
    std::unique_ptr<sequences> s;  // outlives the cache
    std::unique_ptr<cache> c;
    void* stream = nullptr;

private:
    status try_start(uint64_t budget);
    void store_words(uint32_t block, uint64_t chain);
    uint64_t chain_at(uint32_t block) const;
    bool is_whole(uint32_t block) const;
    std::vector<uint8_t> memory_;
    std::vector<uint8_t> second_memory_;
    std::deque<std::function<void()>> work_;
};

// n tokens that depend on the seed; equal seeds give equal beginnings.
tokens_t make_tokens(uint32_t n, uint32_t seed = 1);
tokens_t operator+(tokens_t a, const tokens_t& b);

}  // namespace kvo::test

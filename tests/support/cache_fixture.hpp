// A small cache for tests: one or more groups in device memory of the test, exactly as many blocks
// as asked, and blocks filled with a pattern of (key, version) so that every byte that comes back
// can be checked. By default on the step device with manual progress; settle() runs device and
// cache until both are at rest. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/budget.hpp"
#include "cache/cache.hpp"
#include "support/catch.hpp"
#include "support/step_device.hpp"

namespace kvo::test {

struct cache_setup {
    uint32_t blocks = 4;  // capacity, to the block
    uint32_t n_device_blocks = 64;
    uint32_t ratio = 1;                           // device blocks of a host block
    std::vector<uint32_t> part_bytes{4096};       // parts of group 0
    std::vector<uint32_t> more_groups{};          // bytes of further groups with one part each
    uint32_t opaque_bytes = 0;                    // an opaque group behind the others
    std::function<void(kvo_config_t*)> adjust{};  // last word on the config, before the budget
    uint32_t max_blocks = 0;                      // what max_bytes buys; 0: blocks
    bool host_device = false;
    const device_table* custom = nullptr;  // instead of the step device
};

class cache_fixture {
public:
    explicit cache_fixture(const cache_setup& setup = {});
    ~cache_fixture();

    // The budget that buys exactly n blocks here.
    uint64_t budget_for(uint32_t n) const;

    void settle();
    void fill(uint32_t device_block, uint64_t key, uint32_t version);
    bool holds(uint32_t device_block, uint64_t key, uint32_t version) const;

    struct stored {
        status result = KVO_OK;
        kvo_store_result_t counts{};
        std::vector<uint8_t> verdicts;
        kvo_op_t op{};
        std::string text() const;  // letters: Taken, Present, W = pending,
                                   // Duplicate, Hole, Full, Orphan, R = no record, X = no extras
    };
    // Fills device block i with keys[i] first, settles and takes the completion.
    stored store(const std::vector<uint64_t>& keys, uint32_t flags = 0, uint32_t version = 0);
    // Only submits.
    stored submit(const std::vector<uint64_t>& keys, uint32_t flags = 0, uint32_t version = 0);
    kvo_completion_t take(kvo_op_t op);

    // "1 2 5": those of the keys that are here, one probe each.
    std::string here(const std::vector<uint64_t>& keys);
    kvo_match_t probe(const std::vector<uint64_t>& keys, uint32_t n_local = 0);
    kvo_ticket_t match(const std::vector<uint64_t>& keys, uint32_t n_local = 0,
                       kvo_match_t* out = nullptr);
    void touch(const std::vector<uint64_t>& keys);  // match each by itself, release
    // Loads the whole ready run into device blocks from `first_block` on; completion after
    // settling.
    kvo_completion_t load(kvo_ticket_t ticket, uint32_t n, uint32_t first_block);
    kvo_stats_t stats();
    kvo_capacity_t capacity();
    std::string removed_and_stored();  // "-1 +3": events since the last call

    static kvo_key_t key(uint64_t number);
    static uint64_t number(const kvo_key_t& key);
    static std::vector<kvo_key_t> keys(const std::vector<uint64_t>& numbers);
    std::vector<kvo_blocks_t> lists(const std::vector<uint32_t>& ids) const;

    cache_setup setup;
    kvo_config_t config = KVO_CONFIG_INIT;
    step_device device;
    device_table table;
    std::unique_ptr<cache> c;
    void* stream = nullptr;
    kvo_ns_t ns{};

private:
    void register_groups();
    void choose_budget();
    budget_inputs inputs_;
    std::vector<std::vector<uint8_t>> memory_;  // per group: parts one after another
    uint32_t n_device_groups() const { return 1 + static_cast<uint32_t>(setup.more_groups.size()); }
};

}  // namespace kvo::test

// Least recently used: one list of victims; pinned entries are in none. Not thread-safe (cache lock).
#pragma once

#include "index/order_list.hpp"
#include "index/policy.hpp"

namespace kvo {

class lru_policy final : public policy {
public:
    explicit lru_policy(uint32_t max_entries);
    static uint64_t bytes_for(uint32_t max_entries);

    void set_capacity(uint32_t) override {}
    void hit(entry_id e) override;
    admission admit(uint64_t ghost_key, bool full) override;
    entry_id victim(const admission& a) override;
    void refuse(const admission&) override {}
    void insert(entry_id, const admission&) override {}
    void remove(entry_id e) override;
    void pin(entry_id e) override;
    void unpin(entry_id e, entry_id parent) override;
    entry_id oldest() override;
    void clear() override;

private:
    void take_out(uint32_t i);

    order_links links_;
    std::vector<uint8_t> listed_;  // 1: in order_
    order_list order_;
};

}  // namespace kvo

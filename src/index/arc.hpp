// ARC, the paper's (Megiddo and Modha, FAST 2003, figure 4), with a real-valued target p. T1: seen once,
// T2: seen more often, B1 and B2: their ghosts. Pinned entries count in |T1| and |T2| but are in no victim
// list; when the list that REPLACE wants has only pinned ones, the other gives. Not thread-safe.
#pragma once

#include "index/ghosts.hpp"
#include "index/order_list.hpp"
#include "index/policy.hpp"

namespace kvo {

class arc_policy final : public policy {
public:
    explicit arc_policy(uint32_t max_entries);
    static uint64_t bytes_for(uint32_t max_entries);

    void set_capacity(uint32_t capacity) override;
    void hit(entry_id e) override;
    admission admit(uint64_t ghost_key, bool full) override;
    entry_id victim(const admission& a) override;
    void refuse(const admission& a) override;
    void insert(entry_id e, const admission& a) override;
    void remove(entry_id e) override;
    void pin(entry_id e) override;
    void unpin(entry_id e, entry_id parent) override;
    entry_id oldest() override;
    void clear() override;

    struct sizes {
        uint32_t t1, t2, b1, b2;
        double p;
    };
    sizes read_sizes() const;

private:
    enum place : uint8_t { absent = 0, t1 = 1, t2 = 2 };

    order_list& order(uint8_t where) { return where == t1 ? order_t1_ : order_t2_; }
    uint32_t& count(uint8_t where) { return where == t1 ? n_t1_ : n_t2_; }
    void take_out(uint32_t i);           // of its victim list, if it is in one
    entry_id leave(uint8_t where, bool ghost);
    void trim_ghosts();

    uint32_t capacity_ = 0;
    double p_ = 0;          // target size of T1
    double p_before_ = 0;   // for refuse()
    order_links links_;
    std::vector<uint8_t> where_;       // place of each entry
    std::vector<uint8_t> listed_;      // 1: in its victim list (not pinned)
    std::vector<uint64_t> ghost_key_;  // digest of each resident entry
    order_list order_t1_, order_t2_;
    uint32_t n_t1_ = 0, n_t2_ = 0;     // pinned ones included
    ghost_lists ghosts_;
};

}  // namespace kvo

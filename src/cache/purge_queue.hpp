// When is a purge over? When every block of its namespace that had been removed before is free and,
// where asked, zeroed. Removals are counted on one of two sides of the namespace; a purge that
// begins to drain flips the side, so that later removals can't hold it up. Not thread-safe (cache
// lock). No allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "cache/namespaces.hpp"

namespace kvo {

class purge_queue {
public:
    static uint64_t bytes_for(uint32_t n) { return uint64_t{n} * sizeof(place); }
    void reset(uint32_t n);

    // Counts something removed whose bytes are still in use; the side goes back to gone().
    static uint8_t removed(ns_record& ns) {
        ++ns.dead[ns.side];
        return ns.side;
    }
    // One more thing that stays of what was removed on that side.
    static void stays(ns_record& ns, uint8_t side) { ++ns.dead[side]; }
    void gone(ns_record& ns, uint8_t side) {
        --ns.dead[side];
        settle(ns);
    }
    // One op waits for all that is counted now. There is a place for every op record.
    void wait(ns_record& ns, op_index op);
    // An op whose wait is over.
    bool take_done(op_index* op);

private:
    struct place {
        op_index op = kNoOp;
        uint32_t next = 0;
    };
    void settle(ns_record& ns);
    void move_list(uint32_t* from, uint32_t* to);

    std::vector<place> places_;
    uint32_t free_ = 0, done_ = UINT32_MAX;
};

}  // namespace kvo

// Watches on ops: how a sequence learns that a load or a detached store of its is over, and how it
// ended. A watch lives until the op is over and every sequence that looked at it has let go, so
// that neither the end of a sequence nor a fork loses or misdirects the news. Fixed room, no
// allocation after place(). Thread-safe. op_over comes under the cache lock; the lock in here is
// taken inside it, never around it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "cache/cache.hpp"
#include "sequence/region.hpp"

namespace kvo {

constexpr uint32_t kNoWatch = UINT32_MAX;

class op_watches final : public op_observer {
public:
    static uint64_t bytes_for(uint32_t n) { return region::bytes_for<watch>(n); }
    void place(region& memory, uint32_t n);

    // A watch and the tag to submit its op with; kNoWatch when all are in use. The caller holds it;
    // the op holds it, too: call never_mind when the op was not accepted after all.
    uint32_t take(uint64_t* owner_tag);
    void never_mind(uint32_t w);
    void hold(uint32_t w);
    void let_go(uint32_t w);

    // False while the op is running; then *n_good gets how many of its leading blocks are good.
    bool is_over(uint32_t w, uint32_t* n_good) const;
    uint32_t n_used() const;
    uint32_t size() const { return n_; }

    void op_over(uint64_t owner_tag, const kvo_completion_t& completion) override;

private:
    static constexpr uint32_t kRunning = UINT32_MAX;
    struct watch {
        // Low half: kRunning, or how many blocks were good. High half: serial, so that a late word
        // about an earlier op of this place changes nothing.
        std::atomic<uint64_t> word;
        uint32_t refs;
        uint32_t next_free;
    };
    void drop(uint32_t w);  // under the lock

    mutable std::mutex mutex_;
    watch* watches_ = nullptr;
    uint32_t n_ = 0, n_used_ = 0, first_free_ = kNoWatch;
    uint32_t serial_ = 0;
};

}  // namespace kvo

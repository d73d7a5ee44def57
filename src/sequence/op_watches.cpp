#include "sequence/op_watches.hpp"

#include <algorithm>

namespace kvo {

void op_watches::place(region& memory, uint32_t n) {
    watches_ = memory.take<watch>(n);
    n_ = n;
    for (uint32_t i = 0; i < n; ++i) watches_[i].next_free = i + 1 < n ? i + 1 : kNoWatch;
    first_free_ = n > 0 ? 0 : kNoWatch;
}

uint32_t op_watches::take(uint64_t* owner_tag) {
    const std::lock_guard lock(mutex_);
    const uint32_t w = first_free_;
    if (w == kNoWatch) return kNoWatch;
    first_free_ = watches_[w].next_free;
    ++n_used_;
    if (++serial_ == 0) serial_ = 1;  // a tag of 0 means none
    watches_[w].refs = 2;
    watches_[w].word.store(uint64_t{serial_} << 32 | kRunning, std::memory_order_relaxed);
    *owner_tag = uint64_t{serial_} << 32 | w;
    return w;
}

void op_watches::drop(uint32_t w) {
    if (--watches_[w].refs > 0) return;
    watches_[w].next_free = first_free_;
    first_free_ = w;
    --n_used_;
}

void op_watches::never_mind(uint32_t w) {
    const std::lock_guard lock(mutex_);
    drop(w);
    drop(w);
}

void op_watches::hold(uint32_t w) {
    const std::lock_guard lock(mutex_);
    ++watches_[w].refs;
}

void op_watches::let_go(uint32_t w) {
    const std::lock_guard lock(mutex_);
    drop(w);
}

bool op_watches::is_over(uint32_t w, uint32_t* n_good) const {
    const uint64_t word = watches_[w].word.load(std::memory_order_acquire);
    *n_good = static_cast<uint32_t>(word);
    return *n_good != kRunning;
}

uint32_t op_watches::n_used() const {
    const std::lock_guard lock(mutex_);
    return n_used_;
}

void op_watches::op_over(uint64_t owner_tag, const kvo_completion_t& completion) {
    const auto w = static_cast<uint32_t>(owner_tag);
    const uint64_t serial = owner_tag >> 32;
    const bool good = completion.status == KVO_OK;
    const uint32_t n_good =
        good ? completion.n_blocks : std::min(completion.first_bad, completion.n_blocks);
    uint64_t running = serial << 32 | kRunning;
    if (!watches_[w].word.compare_exchange_strong(running, serial << 32 | n_good,
                                                  std::memory_order_release)) {
        return;
    }
    let_go(w);
}

}  // namespace kvo

#include "sequence/sequence_record.hpp"

namespace kvo {

namespace {

uint32_t next_tag() {
    static std::atomic<uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) % (kCacheTags - 1) + 1;
}

}  // namespace

void sequence_table::place(region& memory, uint32_t n) {
    records_ = memory.take<sequence_record>(n);
    n_ = n;
    tag_ = next_tag();
    for (uint32_t i = 0; i < n; ++i) records_[i].next_free = i + 1;
}

sequence_record* sequence_table::take(kvo_seq_t* handle) {
    const std::lock_guard lock(mutex_);
    if (first_free_ >= n_) return nullptr;
    const uint32_t i = first_free_;
    sequence_record& r = records_[i];
    first_free_ = r.next_free;
    ++n_used_;
    static_cast<sequence_facts&>(r) = sequence_facts{};
    if (++r.generation_of_handle == 0) r.generation_of_handle = 1;
    handle->value = make_handle(tag_, i, r.generation_of_handle);
    r.handle.store(handle->value, std::memory_order_release);
    return &r;
}

void sequence_table::give(sequence_record* r) {
    // Nobody enters any more, then the record is nobody's.
    r->handle.store(0, std::memory_order_seq_cst);
    r->inside.store(false, std::memory_order_seq_cst);
    const std::lock_guard lock(mutex_);
    r->next_free = first_free_;
    first_free_ = static_cast<uint32_t>(r - records_);
    --n_used_;
}

sequence_record* sequence_table::find(kvo_seq_t handle) {
    const uint32_t i = handle_index(handle.value);
    if (handle.value == 0 || i >= n_) return nullptr;
    sequence_record& r = records_[i];
    return r.handle.load(std::memory_order_acquire) == handle.value ? &r : nullptr;
}

uint32_t sequence_table::n_used() const {
    const std::lock_guard lock(mutex_);
    return n_used_;
}

}  // namespace kvo

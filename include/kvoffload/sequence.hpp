// A sequence as an object: the hooks of a server. Move-only; ends when it goes; must not outlive its cache.
// One thread at a time per sequence. Members are the C functions of the same name (kvo_seq.h).
#pragma once

#include "kvoffload/cache.hpp"
#include "kvoffload/kvo_seq.h"

namespace kvoffload {
inline namespace v0_1 {

struct lookup {
    uint32_t n_tokens = 0;
    kvo_lookup_state_t state = KVO_LOOKUP_MISS;
};

class sequence {
public:
    sequence() noexcept = default;
    sequence(sequence&& other) noexcept : c_(other.c_), s_(std::exchange(other.s_, kvo_seq_t{0})) {}
    sequence& operator=(sequence&& other) noexcept {
        sequence moved(std::move(other));
        std::swap(c_, moved.c_);
        std::swap(s_, moved.s_);
        return *this;
    }
    ~sequence() { (void)end(); }

    static result<sequence> begin(cache& c, kvo_ns_t ns, const kvo_seq_options_t* options = nullptr) noexcept {
        sequence s;
        s.c_ = c.get();
        const status ok = kvo_seq_begin(c.get(), ns, options, &s.s_);
        if (!ok) return ok;
        return s;
    }
    explicit operator bool() const noexcept { return s_.value != 0; }
    kvo_seq_t get() const noexcept { return s_; }

    // bytes empty: there is such content, but no identity for it.
    status extras(uint32_t token_begin, uint32_t token_count, view<const uint8_t> bytes) noexcept {
        return kvo_seq_extras(c_, s_, token_begin, token_count, bytes.data(), bytes.size());
    }
    result<kvoffload::lookup> lookup(view<const uint32_t> tokens, uint32_t n_local) noexcept {
        kvoffload::lookup out;
        const status ok = kvo_seq_lookup(c_, s_, tokens.data(), tokens.count(), n_local, &out.n_tokens, &out.state);
        if (!ok) return ok;
        return out;
    }
    result<kvo_op_t> prefill(view<const kvo_blocks_t> blocks, uint32_t n_tokens, void* stream,
                             const kvo_load_options_t* options = nullptr) noexcept {
        kvo_op_t op{0};
        const status ok = kvo_seq_prefill(c_, s_, blocks.data(), blocks.count(), n_tokens, stream, options, &op);
        if (!ok) return ok;
        return op;
    }
    status prefilled(uint32_t n_computed, view<const kvo_blocks_t> blocks, void* stream) noexcept {
        return kvo_seq_prefilled(c_, s_, n_computed, blocks.data(), blocks.count(), stream);
    }
    status decode(view<const uint32_t> new_tokens, uint32_t n_computed, view<const kvo_blocks_t> blocks,
                  void* stream) noexcept {
        return kvo_seq_decode(c_, s_, new_tokens.data(), new_tokens.count(), n_computed, blocks.data(),
                              blocks.count(), stream);
    }
    status rewind(uint32_t n_tokens, void* stream) noexcept { return kvo_seq_rewind(c_, s_, n_tokens, stream); }
    result<sequence> fork(uint32_t n_tokens) noexcept {
        sequence out;
        out.c_ = c_;
        const status ok = kvo_seq_fork(c_, s_, n_tokens, &out.s_);
        if (!ok) return ok;
        return out;
    }
    status preempt() noexcept { return kvo_seq_preempt(c_, s_); }
    status end() noexcept {
        if (s_.value == 0) return {};
        return kvo_seq_end(c_, std::exchange(s_, kvo_seq_t{0}));
    }
    result<kvo_seq_info_t> info() const noexcept {
        kvo_seq_info_t out = KVO_SEQ_INFO_INIT;
        const status ok = kvo_seq_info(c_, s_, &out);
        if (!ok) return ok;
        return out;
    }
    result<kvo_key_t> key(uint32_t index) const noexcept {
        kvo_key_t out{};
        const status ok = kvo_seq_key(c_, s_, index, &out);
        if (!ok) return ok;
        return out;
    }

private:
    kvo_cache_t* c_ = nullptr;
    kvo_seq_t s_{0};
};

inline status decode_batch(cache& c, view<kvo_decode_item_t> items, void* stream) noexcept {
    return kvo_seq_decode_batch(c.get(), items.data(), items.count(), stream);
}

}  // namespace v0_1
}  // namespace kvoffload

#include "sequence/sequences.hpp"

#include <algorithm>
#include <new>

#include "cache/config.hpp"
#include "sequence/state.hpp"

namespace kvo {

namespace {

token_pages::size page_size(const kvo_config_t& c) {
    return {c.block_tokens, c.max_seqs, c.max_seq_tokens};
}

// Ops in flight, and what sequences have not taken note of yet.
uint32_t n_watches(const kvo_config_t& c) { return c.max_ops + 2 * c.max_seqs; }

// The longest lookup: one sequence with all the tokens there may be.
uint64_t n_scratch(const kvo_config_t& c) {
    const uint64_t most = std::min<uint64_t>(c.max_seq_tokens, UINT32_MAX) / c.block_tokens;
    return most > kBlocksOnStack ? most : 0;
}

uint64_t scratch_bytes(uint64_t n) {
    return region::bytes_for<kvo_key_t>(n) + region::bytes_for<uint32_t>(n) +
           region::bytes_for<context_id>(n);
}

}  // namespace

uint64_t sequences::bytes_per_block(const kvo_config_t& config) {
    return identity_store::bytes_per_entry(config.block_tokens);
}

uint64_t sequences::bytes_fixed(const kvo_config_t& c) {
    return identity_store::bytes_fixed() + token_pages::bytes_for(page_size(c)) +
           context_store::bytes_for(c.max_extra_bytes) + op_watches::bytes_for(n_watches(c)) +
           sequence_table::bytes_for(c.max_seqs) + scratch_bytes(n_scratch(c));
}

sequences::state::state(cache& c, key_filter filter)
    : blocks(c), config(c.config()), weaken(filter), block_tokens(c.config().block_tokens) {}

sequences::sequences(std::unique_ptr<state> s) : state_(std::move(s)) {}
sequences::~sequences() = default;

status sequences::create(cache& c, std::unique_ptr<sequences>* out, const key_filter& weaken) {
    auto s = std::unique_ptr<state>(new (std::nothrow) state(c, weaken));
    if (s == nullptr) return fail(KVO_E_MEMORY, "no memory for the sequence level");
    c.set_identity_keeper(&s->identities);
    c.set_op_observer(&s->watches);
    out->reset(new (std::nothrow) sequences(std::move(s)));
    return *out != nullptr ? KVO_OK : fail(KVO_E_MEMORY, "no memory for the sequence level");
}

status sequences::start() {
    state& s = *state_;
    const kvo_config_t& c = s.config;
    if (s.started) return fail(KVO_E_STATE, "the sequence level was started before");
    const uint64_t bytes = bytes_fixed(c) + bytes_per_block(c) * s.blocks.max_entries();
    if (!s.memory.map(bytes))
        return fail(KVO_E_MEMORY, "the system gave no {} bytes for sequences", bytes);
    s.identities.place(s.memory, s.blocks.max_entries(), c.block_tokens);
    s.pages.place(s.memory, page_size(c));
    s.contexts.place(s.memory, c.max_extra_bytes);
    s.watches.place(s.memory, n_watches(c));
    s.table.place(s.memory, c.max_seqs);
    const uint64_t n = n_scratch(c);
    s.scratch.keys = {s.memory.take<kvo_key_t>(n), n};
    s.scratch.pages = {s.memory.take<uint32_t>(n), n};
    s.scratch.contexts = {s.memory.take<context_id>(n), n};
    s.n_groups = s.blocks.n_groups();
    for (uint32_t g = 0; g < s.n_groups; ++g)
        s.lag_tokens = std::max(s.lag_tokens, s.blocks.lag_tokens(g));
    s.started = true;
    return KVO_OK;
}

uint32_t sequences::n_open() const { return state_->table.n_used(); }

sequences::room_t sequences::room() const {
    const state& s = *state_;
    return {s.pages.n_pages() - s.pages.free_pages(),
            s.pages.n_pages(),
            s.watches.n_used(),
            s.watches.size(),
            s.contexts.capacity_bytes() - s.contexts.free_bytes(),
            s.contexts.capacity_bytes()};
}

hook::hook(sequences::state& s, kvo_seq_t seq) {
    sequence_record* r = s.table.find(seq);
    if (r == nullptr) {
        result_ = fail(KVO_E_HANDLE, "sequence {:#x} has ended or is of another cache", seq.value);
    } else if (r->inside.exchange(true, std::memory_order_seq_cst)) {
        result_ = fail(KVO_E_BUSY, "another thread is inside a hook of sequence {:#x}", seq.value);
    } else if (r->handle.load(std::memory_order_seq_cst) != seq.value) {
        r->inside.store(false, std::memory_order_release);  // it ended while we came in
        result_ = fail(KVO_E_HANDLE, "sequence {:#x} has ended", seq.value);
    } else {
        record_ = r;
    }
}

}  // namespace kvo

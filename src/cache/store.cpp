// Stores: computed device blocks to the host.
#include <algorithm>
#include <array>

#include "cache/config.hpp"
#include "cache/placement.hpp"
#include "cache/state.hpp"
#include "cache/store_options.hpp"

namespace kvo {

status check_store_options(const kvo_store_options_t& o) {
    if (status s = check_struct("kvo_store_options_t", o.struct_size, o.api_version, sizeof(o));
        s != KVO_OK)
        return s;
    if ((o.flags & ~(KVO_OP_DETACHED | KVO_STORE_UNCHAINED)) != 0 || o.reserved != 0 ||
        o.parents_held > 1) {
        return fail(KVO_E_ARGUMENT,
                    "flags {:#x} (known are {:#x}), parents_held {} (0 or 1), reserved {} (0)",
                    o.flags, KVO_OP_DETACHED | KVO_STORE_UNCHAINED, o.parents_held, o.reserved);
    }
    if (o.n_after > kMaxAfter || (o.n_after > 0 && o.after == nullptr)) {
        return fail(KVO_E_ARGUMENT, "n_after is {} (at most {}) and after is {}", o.n_after,
                    kMaxAfter, o.after == nullptr ? "NULL" : "given");
    }
    return KVO_OK;
}

namespace {

// Adds taken keys to an open op.
class op_sink final : public placement_sink {
public:
    op_sink(cache::state& s, std::span<const kvo_blocks_t> src, op_index op)
        : s_(s), src_(src), op_(op) {}

    bool is_hole(uint32_t i) const override {
        for (const kvo_blocks_t& list : src_) {
            const auto ids = ids_of(list, i);
            if (std::find(ids.begin(), ids.end(), KVO_NO_BLOCK) != ids.end()) return true;
        }
        return false;
    }
    bool take(uint32_t i, entry_id e, uint32_t groups) override {
        std::array<transfer_engine::group_piece, kMaxGroups> pieces{};
        for (const kvo_blocks_t& list : src_) {
            if ((groups & 1u << list.group) == 0) continue;
            pieces[list.group] = {settled(s_.index->slot(e, list.group)), ids_of(list, i)};
        }
        return s_.engine->add_block(op_, op_block{e, i, KVO_OK},
                                    {pieces.data(), s_.groups.size()}) == KVO_OK;
    }

private:
    std::span<const uint32_t> ids_of(const kvo_blocks_t& list, uint32_t i) const {
        const uint32_t ratio = s_.groups[list.group].ratio;
        return {list.ids + uint64_t{i} * ratio, ratio};
    }

    cache::state& s_;
    std::span<const kvo_blocks_t> src_;
    op_index op_;
};

}  // namespace

status cache::store(kvo_ns_t ns, std::span<const kvo_key_t> keys, const kvo_key_t* parent,
                    std::span<const kvo_blocks_t> src, void* stream,
                    const kvo_store_options_t& options, const call_extras& extras,
                    kvo_store_result_t* result, kvo_op_t* op) {
    state& s = *state_;
    const bool detached = (options.flags & KVO_OP_DETACHED) != 0;
    if (result != nullptr) *result = kvo_store_result_t{};
    if (op != nullptr) *op = kvo_op_t{};
    if (status bad = s.check_process(); bad != KVO_OK) return bad;
    if (status bad = check_store_options(options); bad != KVO_OK) return bad;
    if (!detached && (op == nullptr || result == nullptr)) {
        return fail(KVO_E_ARGUMENT, "op and result may be NULL only with KVO_OP_DETACHED");
    }
    locked lock(s.mutex);
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    placement_request r;
    if (status bad = s.names.find(ns, &r.ns); bad != KVO_OK) return bad;
    lock.unlock();
    if (!keys.empty() && src.empty())
        return fail(KVO_E_ARGUMENT, "{} keys, but no block list", keys.size());
    // Layouts are fixed since start: the ids are checked without the lock. So is the stream, before
    // anything is evicted for this call.
    if (status bad = s.groups.check_lists(src, keys.size(), true, &r.groups); bad != KVO_OK)
        return bad;
    if (status bad = s.check_stream(stream); bad != KVO_OK) return bad;
    lock.lock();
    if (status bad = s.check_running(); bad != KVO_OK) return bad;
    if (status bad = s.check_attached(r.groups); bad != KVO_OK) return bad;
    if (status bad = s.check_generation(extras.generation); bad != KVO_OK) return bad;

    op_request request;
    request.kind = KVO_OP_STORE;
    request.user_data = options.user_data;
    request.deadline_ns = options.deadline_ns;
    request.detached = detached;
    request.after = {options.after, options.n_after};
    op_index at{};
    uint64_t tag = 0;
    if (status bad = s.open_op(request, extras.owner_tag, r.groups, &at, &tag); bad != KVO_OK)
        return bad;
    ++s.counters.store_calls;
    r.keys = keys;
    r.parent = parent;
    r.parents_held = options.parents_held == 1;
    r.unchained = (options.flags & KVO_STORE_UNCHAINED) != 0;
    r.who = extras.who;
    r.verdicts = options.verdicts;
    op_sink sink(s, src, at);
    placement place(s, r, sink);
    const status bad = place.run(lock);
    if (result != nullptr && bad == KVO_OK) *result = place.result();
    kvo_op_t made{};
    const status done = s.finish_submit(lock, at, tag, bad, stream, &made, extras.gate);
    if (op != nullptr && (!detached || extras.owner_tag != 0)) *op = made;
    return done;
}

}  // namespace kvo

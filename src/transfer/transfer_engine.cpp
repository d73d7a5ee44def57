#include "transfer/transfer_engine.hpp"

#include <new>

#include "transfer/engine_state.hpp"

namespace kvo {

namespace {

uint64_t fence_bytes(std::span<const group_layout> groups) {
    uint64_t bytes = 0;
    for (const auto& g : groups) bytes += uint64_t{g.n_device_blocks} * sizeof(uint32_t);
    return bytes;
}

}  // namespace

transfer_engine::state::state(const transfer_config& c, std::span<const group_layout> groups,
                              const device_table& d, const time_source& t, std::mutex& m,
                              const address_source& a, transfer_owner& o)
    : config(c),
      device(d),
      time(t),
      mutex(m),
      addresses(a),
      owner(o),
      pieces(c.max_inflight_blocks),
      blocks(c.max_inflight_blocks),
      ops(c.max_ops),
      gates(c.max_ops + kMostSharedGates),
      free_pieces(c.max_inflight_blocks),
      free_blocks(c.max_inflight_blocks),
      free_ops(c.max_ops),
      free_gates(c.max_ops + kMostSharedGates),
      next_serial(c.first_serial),
      fences(groups, pieces),
      plan(groups),
      pace(c.window_bytes, c.store_bytes_per_s, d.event_wait != nullptr),
      calls(kPiecesPerCall + plan.most_rows()) {
    for (uint8_t lane = 0; lane < kLanes; ++lane) {
        const bool is_main = lane == lane_load || lane == lane_store;
        lanes[lane].slices.resize(is_main ? kMainDepth : c.max_ops);
    }
}

transfer_engine::state::~state() {
    for (op_record& r : ops) {
        if (r.event != nullptr) device.event_destroy(device.context, r.event);
    }
    for (gate_record& g : gates) {
        if (g.event != nullptr) device.event_destroy(device.context, g.event);
    }
    for (lane_state& lane : lanes) {
        for (void* event : lane.events) {
            if (event != nullptr) device.event_destroy(device.context, event);
        }
        if (lane.stream != nullptr) device.stream_destroy(device.context, lane.stream);
    }
}

uint64_t transfer_engine::bytes_for(const transfer_config& c, std::span<const group_layout> groups) {
    constexpr uint64_t kEventBytes = 256;  // of the device, as a guess on the safe side
    const uint64_t per_piece = sizeof(piece_record) + sizeof(block_record) + 2 * sizeof(uint32_t);
    const uint64_t per_op = sizeof(op_record) + 2 * sizeof(slice_record) + sizeof(uint32_t) + kEventBytes;
    const uint64_t n_gates = c.max_ops + state::kMostSharedGates;
    const uint64_t per_gate = sizeof(gate_record) + sizeof(uint32_t) + kEventBytes;
    return sizeof(state) + c.max_inflight_blocks * per_piece + c.max_ops * per_op + n_gates * per_gate +
           fence_bytes(groups);
}

transfer_engine::transfer_engine(std::unique_ptr<state> s) : state_(std::move(s)) {}
transfer_engine::~transfer_engine() = default;

status transfer_engine::create(const transfer_config& config, std::span<const group_layout> groups,
                               const device_table& device, const time_source& time, std::mutex& mutex,
                               const address_source& addresses, transfer_owner& owner,
                               std::unique_ptr<transfer_engine>* out) {
    if (config.max_ops == 0 || config.max_ops > state::kIdStep || config.max_inflight_blocks == 0) {
        return fail(KVO_E_RANGE, "max_ops {} (1..{}), max_inflight_blocks {} (at least 1)", config.max_ops,
                    state::kIdStep, config.max_inflight_blocks);
    }
    std::unique_ptr<state> s;
    try {
        s = std::make_unique<state>(config, groups, device, time, mutex, addresses, owner);
    } catch (const std::bad_alloc&) {
        return fail(KVO_E_MEMORY, "no memory for {} ops and {} blocks in flight", config.max_ops,
                    config.max_inflight_blocks);
    }
    for (uint8_t lane = 0; lane < kLanes; ++lane) {
        status ok = device.stream_create(device.context, &s->lanes[lane].stream);
        for (uint32_t k = 0; ok == KVO_OK && lane < lane_side_load && k < kMainDepth; ++k) {
            ok = device.event_create(device.context, &s->lanes[lane].events[k]);
        }
        if (ok != KVO_OK) return ok;
    }
    for (op_record& r : s->ops) {
        if (const status ok = device.event_create(device.context, &r.event); ok != KVO_OK) return ok;
    }
    for (gate_record& g : s->gates) {
        if (const status ok = device.event_create(device.context, &g.event); ok != KVO_OK) return ok;
    }
    out->reset(new transfer_engine(std::move(s)));
    return KVO_OK;
}

uint32_t transfer_engine::n_active() const { return state_->n_active; }
uint32_t transfer_engine::n_untaken() const { return state_->done.n; }

transfer_counts transfer_engine::counts() const {
    transfer_counts c = state_->counts;
    c.ops_active = state_->n_active;
    c.completions_waiting = state_->done.n;
    c.fence_entries = state_->fences.n_entries();
    return c;
}

void transfer_engine::set_parts(uint32_t group, std::span<const kvo_part_t> parts) {
    state_->plan.set_parts(group, parts);
}

}  // namespace kvo

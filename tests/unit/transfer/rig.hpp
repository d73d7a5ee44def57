// A transfer engine over the step device, with device blocks and slots in plain memory, and an owner that
// writes down what it hears.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "support/catch.hpp"
#include "support/step_device.hpp"
#include "transfer/transfer_engine.hpp"

namespace kvo::test {

struct rig_config {
    uint32_t n_device_blocks = 32;
    uint32_t n_slots = 64;
    uint32_t n_parts = 1;
    uint32_t rows = 1;
    uint32_t ratio = 1;
    uint64_t row_bytes = 256;
    uint64_t seed = 1;
    transfer_config transfer{};
};

class rig final : public transfer_owner, public transfer_engine::address_source {
public:
    explicit rig(const rig_config& c = {}) : config(c), device(c.seed) {
        // Every part has canary bytes between its rows and blocks.
        pitch = c.row_bytes + 64;
        stride = pitch * c.rows + 128;
        part_bytes = c.row_bytes * c.rows * c.ratio;
        slot_bytes = part_bytes * c.n_parts;
        for (uint32_t p = 0; p < c.n_parts; ++p) {
            memory.emplace_back(stride * c.n_device_blocks, uint8_t{0xCC});
            parts.push_back({memory.back().data(), stride, c.row_bytes, pitch, c.rows, 0});
        }
        slots.assign(slot_bytes * c.n_slots, 0);
        layout = {parts, c.n_device_blocks, c.ratio, slot_bytes};
        REQUIRE(transfer_engine::create(c.transfer, std::span(&layout, 1), device.table(), device.clock(),
                                        mutex, *this, *this, &engine) == KVO_OK);
    }

    uint8_t* slot_address(uint32_t, slot_id slot) const override {
        return const_cast<uint8_t*>(slots.data()) + raw(slot) * slot_bytes;
    }
    void block_over(kvo_op_kind_t, uint64_t tag, op_block& block) override {
        over[tag].push_back(block);
        if (veto != KVO_OK && block.result == KVO_OK) block.result = veto;
    }
    void op_over(uint64_t tag, const kvo_completion_t& c) override { ended[tag].push_back(c); }

    // Fills device block d (slot s) so that every byte depends on `key`.
    void fill_device(uint32_t d, uint8_t key) {
        each_row([&](uint32_t p, uint32_t r, uint64_t) {
            std::memset(row(p, d, r), key + static_cast<int>(7 * p + r), config.row_bytes);
        });
    }
    void fill_slot(uint32_t s, uint8_t key) {
        each_row([&](uint32_t p, uint32_t r, uint64_t at) {
            for (uint32_t sub = 0; sub < config.ratio; ++sub) {
                std::memset(&slots[s * slot_bytes + at + sub * config.row_bytes * config.rows],
                            key + static_cast<int>(7 * p + r), config.row_bytes);
            }
        });
    }
    bool device_has(uint32_t d, uint8_t key) {
        bool ok = true;
        each_row([&](uint32_t p, uint32_t r, uint64_t) {
            const uint8_t* at = row(p, d, r);
            for (uint64_t i = 0; i < config.row_bytes; ++i) {
                ok = ok && at[i] == static_cast<uint8_t>(key + 7 * p + r);
            }
            for (uint64_t i = config.row_bytes; i < pitch; ++i) ok = ok && at[i] == 0xCC;
        });
        return ok;
    }
    bool slot_has(uint32_t s, uint8_t key, uint32_t sub = 0) {
        bool ok = true;
        each_row([&](uint32_t p, uint32_t r, uint64_t at) {
            const uint8_t* from = &slots[s * slot_bytes + at + sub * config.row_bytes * config.rows];
            for (uint64_t i = 0; i < config.row_bytes; ++i) {
                ok = ok && from[i] == static_cast<uint8_t>(key + 7 * p + r);
            }
        });
        return ok;
    }

    struct one_block {
        uint32_t slot, device_block;
    };
    op_index open(const op_request& request, const std::vector<one_block>& blocks) {
        const std::lock_guard lock(mutex);
        op_index op;
        REQUIRE(engine->open(request, &op) == KVO_OK);
        for (uint32_t i = 0; i < blocks.size(); ++i) {
            const uint32_t id = blocks[i].device_block;
            const transfer_engine::group_piece piece{slot_id{blocks[i].slot}, std::span(&id, 1)};
            REQUIRE(engine->add_block(op, {entry_id{blocks[i].slot}, i, KVO_OK}, std::span(&piece, 1)) ==
                    KVO_OK);
        }
        return op;
    }
    kvo_op_t submit(kvo_op_kind_t kind, const std::vector<one_block>& blocks, void* stream,
                    op_request request = {}) {
        request.kind = kind;
        request.tag = ++last_tag;
        kvo_op_t id{};
        REQUIRE(engine->submit(open(request, blocks), stream, &id) == KVO_OK);
        return id;
    }
    // Runs device and engine until nothing moves.
    void settle() {
        for (int i = 0; i < 10'000; ++i) {
            const bool busy = engine->progress_once();
            const bool moved = device.run();
            if (!busy && !moved) return;
        }
        FAIL("the engine never came to rest");
    }
    kvo_completion_t completion(kvo_op_t op) {
        const std::lock_guard lock(mutex);
        kvo_completion_t c{};
        INFO("op " << op.value);
        REQUIRE(engine->take_one(op, &c) == KVO_OK);
        return c;
    }
    bool is_over(kvo_op_t op) {
        const std::lock_guard lock(mutex);
        kvo_completion_t c{};
        return engine->take_one(op, &c) == KVO_OK;
    }
    transfer_counts counts() {
        const std::lock_guard lock(mutex);
        return engine->counts();
    }

    rig_config config;
    step_device device;
    std::mutex mutex;
    uint64_t pitch, stride, part_bytes, slot_bytes;
    std::vector<std::vector<uint8_t>> memory;
    std::vector<kvo_part_t> parts;
    std::vector<uint8_t> slots;
    group_layout layout;
    std::map<uint64_t, std::vector<op_block>> over;
    std::map<uint64_t, std::vector<kvo_completion_t>> ended;
    uint64_t last_tag = 0;
    status veto = KVO_OK;
    std::unique_ptr<transfer_engine> engine;

private:
    uint8_t* row(uint32_t p, uint32_t d, uint32_t r) { return &memory[p][d * stride + r * pitch]; }
    template <typename Row>
    void each_row(Row visit) {
        for (uint32_t p = 0; p < config.n_parts; ++p) {
            for (uint32_t r = 0; r < config.rows; ++r) visit(p, r, p * part_bytes + r * config.row_bytes);
        }
    }
};

}  // namespace kvo::test

// Stores and loads through the whole library (C++ skin, index, planner, worker, stream) against the
// bare copy of the same pieces: memcpy and non-temporal stores, one thread, between the same device
// memory and memory laid out like the pool. One turn of each per iteration. `ratio` is the faster bare
// copy's median time by the library's: 1 means that the library costs nothing. Blocks have two parts
// (K and V) and lie shuffled in the device pool, so that hardly two pieces are neighbours.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <kvoffload/kvoffload.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "device/host_copy.hpp"
#include "timing.hpp"

namespace {

using bench::clock_type;
using bench::median;
using bench::seconds_since;
constexpr uint64_t kBytesPerTurn = uint64_t{256} << 20;  // more than the caches hold
constexpr uint32_t kParts = 2;

class big_memory {
public:
    explicit big_memory(uint64_t bytes) : bytes_(bytes) {
        void* at =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) std::abort();
        madvise(at, bytes, MADV_HUGEPAGE);
        data_ = static_cast<uint8_t*>(at);
        std::memset(data_, 1, bytes);
    }
    big_memory(const big_memory&) = delete;
    ~big_memory() { munmap(data_, bytes_); }
    uint8_t* data() { return data_; }

private:
    uint64_t bytes_;
    uint8_t* data_;
};

using copy_fn = void (*)(void*, const void*, size_t);
void plain_copy(void* dst, const void* src, size_t n) { std::memcpy(dst, src, n); }
void streamed_copy(void* dst, const void* src, size_t n) { kvo::non_temporal_copy(dst, src, n); }

class rig {
public:
    explicit rig(uint64_t part_bytes)
        : part_bytes_(part_bytes),
          n_(static_cast<uint32_t>(kBytesPerTurn / (kParts * part_bytes))),
          device_{2 * n_ * kParts * part_bytes},
          pool_{2 * n_ * kParts * part_bytes} {
        ids_.resize(2 * n_);
        std::iota(ids_.begin(), ids_.end(), 0u);
        std::shuffle(ids_.begin(), ids_.end(), std::mt19937(3));
        kvo_config_t config = kvoffload::default_config();
        config.budget_bytes = 2 * n_ * kParts * part_bytes + (uint64_t{64} << 20);
        config.block_tokens = 16;
        config.setup = KVO_SETUP_EAGER;
        cache_ = std::move(*kvoffload::cache::create(config));
        kvo_part_t parts[kParts];
        for (uint32_t p = 0; p < kParts; ++p)
            parts[p] = {part(p, 0), part_bytes, part_bytes, part_bytes, 1, 0};
        kvo_group_config_t group = kvoffload::default_group();
        group.n_device_blocks = 2 * n_;
        group.n_parts = kParts;
        group.parts = parts;
        if (!cache_.register_group(group) || !cache_.start()) {
            std::fprintf(stderr, "%s\n", kvo_last_error());
            std::abort();
        }
    }

    // Each turn uses the other half of the device blocks.
    double bare(bool is_load, copy_fn copy) {
        const auto begin = clock_type::now();
        for (uint32_t i = 0; i < n_; ++i) {
            for (uint32_t p = 0; p < kParts; ++p) {
                uint8_t* host = pool_.data() + ((turn_ % 2 * n_ + i) * kParts + p) * part_bytes_;
                uint8_t* device = part(p, turn_ids()[i]);
                copy(is_load ? device : host, is_load ? host : device, part_bytes_);
            }
        }
        kvo::copy_fence();
        return seconds_since(begin);
    }
    double store() {
        make_keys(turn_ + 1);
        const auto begin = clock_type::now();
        kvo_store_options_t options = KVO_STORE_OPTIONS_INIT;
        options.flags = KVO_STORE_UNCHAINED;
        const auto stored = cache_.store({0}, keys_, nullptr, blocks(), KVO_STREAM_IDLE, &options);
        finish(stored->op);
        return seconds_since(begin);
    }
    double load() {
        const auto begin = clock_type::now();
        auto ticket = cache_.match({0}, keys_, 0);
        finish(*cache_.load(*ticket, 0, n_, blocks(), KVO_STREAM_IDLE));
        return seconds_since(begin);
    }
    void next_turn() { ++turn_; }
    uint64_t bytes() const { return n_ * kParts * part_bytes_; }

private:
    uint8_t* part(uint32_t p, uint32_t block) {
        return device_.data() + (uint64_t{p} * 2 * n_ + block) * part_bytes_;
    }
    const uint32_t* turn_ids() const { return ids_.data() + turn_ % 2 * n_; }
    kvo_blocks_t blocks() const { return {0, n_, turn_ids()}; }
    void make_keys(uint64_t turn) {
        keys_.assign(n_, kvo_key_t{});
        for (uint32_t i = 0; i < n_; ++i) {
            std::memcpy(keys_[i].bytes, &turn, sizeof turn);
            std::memcpy(keys_[i].bytes + 8, &i, sizeof i);
        }
    }
    void finish(kvo_op_t op) {
        const auto done = cache_.wait(op, kvoffload::forever);
        if (!done || done->status != KVO_OK || done->n_done != n_) std::abort();
    }

    uint64_t part_bytes_;
    uint32_t n_;
    big_memory device_, pool_;
    kvoffload::cache cache_;
    std::vector<uint32_t> ids_;
    std::vector<kvo_key_t> keys_;
    uint64_t turn_ = 0;
};

void transfer(benchmark::State& state, bool is_load) {
    rig r(static_cast<uint64_t>(state.range(0)) << 10);
    std::vector<double> plain, streamed, library;
    for (auto _ : state) {
        plain.push_back(r.bare(is_load, plain_copy));
        streamed.push_back(r.bare(is_load, streamed_copy));
        const double stored = r.store();
        library.push_back(is_load ? r.load() : stored);
        state.SetIterationTime(library.back());
        r.next_turn();
    }
    const double fastest = std::min(median(plain), median(streamed));
    const auto gb_per_s = [&](double seconds) { return static_cast<double>(r.bytes()) / seconds * 1e-9; };
    state.counters["memcpy_GB_s"] = gb_per_s(median(plain));
    state.counters["streamed_GB_s"] = gb_per_s(median(streamed));
    state.counters["library_GB_s"] = gb_per_s(median(library));
    state.counters["ratio"] = fastest / median(library);
}

}  // namespace

BENCHMARK_CAPTURE(transfer, store, false)
    ->ArgName("part_KiB")->Arg(32)->Arg(512)->Arg(2048)->UseManualTime()->Iterations(21);
BENCHMARK_CAPTURE(transfer, load, true)
    ->ArgName("part_KiB")->Arg(32)->Arg(512)->Arg(2048)->UseManualTime()->Iterations(21);

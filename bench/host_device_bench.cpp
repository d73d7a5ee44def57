// From which piece size on a copy should bypass the caches (kNonTemporalBytes of device/host_copy.hpp):
// memcpy and non-temporal stores over the same pieces of a set of memory larger than the caches, in
// turn. `streamed_by_memcpy` below 1 means that non-temporal stores are the faster ones at this size.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "device/host_copy.hpp"
#include "timing.hpp"

namespace {

using bench::clock_type;
using bench::median;
constexpr size_t kBytes = size_t{128} << 20;

template <typename Copy>
double seconds_of(std::vector<uint8_t>& dst, const std::vector<uint8_t>& src, size_t piece, Copy copy) {
    const auto begin = clock_type::now();
    // Every seventh piece, so that the hardware's prefetch across pieces is no help.
    const size_t n = kBytes / piece;
    for (size_t i = 0, at = 0; i < n; ++i, at = (at + 7) % n)
        copy(dst.data() + at * piece, src.data() + at * piece, piece);
    kvo::copy_fence();
    return bench::seconds_since(begin);
}

void copy_size(benchmark::State& state) {
    const auto piece = static_cast<size_t>(state.range(0)) << 10;
    std::vector<uint8_t> src(kBytes, 1), dst(kBytes, 2);
    std::vector<double> plain, streamed;
    for (auto _ : state) {
        plain.push_back(seconds_of(dst, src, piece, [](void* d, const void* s, size_t n) {
            std::memcpy(d, s, n);
        }));
        streamed.push_back(seconds_of(dst, src, piece, kvo::non_temporal_copy));
        state.SetIterationTime(plain.back());
    }
    state.counters["memcpy_GB_s"] = static_cast<double>(kBytes) / median(plain) * 1e-9;
    state.counters["streamed_GB_s"] = static_cast<double>(kBytes) / median(streamed) * 1e-9;
    state.counters["streamed_by_memcpy"] = median(streamed) / median(plain);
}

}  // namespace

BENCHMARK(copy_size)->ArgName("piece_KiB")->RangeMultiplier(4)->Range(4, 4096)->UseManualTime()->Iterations(15);

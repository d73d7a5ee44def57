// Two groups whose parts begin inside one allocation of device memory: every byte comes from and
// goes to base + id * stride, and what lies between is never touched, whichever way the engine
// drives the copies.
#include <cstdio>
#include <cstring>
#include <kvoffload/kvoffload.hpp>
#include <vector>

namespace {

constexpr uint32_t kBlocks = 16, kStride = 4096, kBytes = 1024, kOffsets[2] = {4608, 6656};
constexpr unsigned char kCanary = 0xC5;
int failures = 0;

unsigned char pattern(uint32_t group, uint32_t block, uint32_t byte) {
    return static_cast<unsigned char>(group * 91 + block * 7 + byte * 3 + 1);
}
void check(bool ok, const char* what, uint32_t progress) {
    if (ok) return;
    ++failures;
    std::fprintf(stderr, "progress %u: %s\n", progress, what);
}

void run(uint32_t progress) {
    std::vector<unsigned char> memory(kOffsets[1] + kBlocks * kStride, kCanary);
    const auto at = [&](uint32_t group, uint32_t block) {
        return memory.data() + kOffsets[group] + block * kStride;
    };
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 64u << 20;
    config.block_tokens = 16;
    config.setup = KVO_SETUP_EAGER;
    config.progress = progress;
    auto cache = kvoffload::cache::create(config);
    for (uint32_t g = 0; g < 2; ++g) {
        const kvo_part_t part{at(g, 0), kStride, kBytes, 0, 1, 0};
        kvo_group_config_t group = kvoffload::default_group();
        group.n_device_blocks = kBlocks;
        group.n_parts = 1;
        group.parts = &part;
        check(static_cast<bool>(cache->register_group(group)), kvo_last_error(), progress);
    }
    check(static_cast<bool>(cache->start()), kvo_last_error(), progress);

    std::vector<kvo_key_t> keys(4);
    for (uint32_t b = 0; b < 4; ++b) {
        keys[b].bytes[0] = static_cast<uint8_t>(b + 1);
        for (uint32_t g = 0; g < 2; ++g) {
            for (uint32_t i = 0; i < kBytes; ++i) at(g, b)[i] = pattern(g, b, i);
        }
    }
    const std::vector<unsigned char> before = memory;
    const uint32_t from[] = {0, 1, 2, 3}, to[] = {8, 9, 10, 11};
    const kvo_blocks_t src[] = {{0, 4, from}, {1, 4, from}}, dst[] = {{0, 4, to}, {1, 4, to}};
    const auto stored = cache->store({0}, keys, nullptr, {src, 2}, KVO_STREAM_IDLE);
    const auto kept = cache->wait(stored->op, kvoffload::forever);
    check(kept && kept->n_done == 4, "4 blocks stored", progress);
    auto ticket = cache->match({0}, keys, 0);
    const auto load = cache->load(*ticket, 0, 4, {dst, 2}, KVO_STREAM_IDLE);
    const auto done = cache->wait(*load, kvoffload::forever);
    check(done && done->n_done == 4, "4 blocks loaded", progress);

    std::vector<unsigned char> expected = before;
    for (uint32_t g = 0; g < 2; ++g) {
        for (uint32_t b = 0; b < 4; ++b)
            std::memcpy(&expected[kOffsets[g] + to[b] * kStride], &before[kOffsets[g] + b * kStride], kBytes);
    }
    check(memory == expected, "bytes, canaries and the other group", progress);
}

}  // namespace

int main() {
    run(KVO_PROGRESS_THREAD);
    run(KVO_PROGRESS_MANUAL);
    if (failures == 0) std::puts("nothing outside the blocks was touched");
    return failures == 0 ? 0 : 1;
}

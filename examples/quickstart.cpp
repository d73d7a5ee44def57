// The same in C++ and on the sequence level: the library makes keys from tokens.
#include <cstdio>
#include <kvoffload/kvoffload.hpp>
#include <numeric>
#include <vector>

int main() {
    constexpr uint32_t kTokens = 16, kBlockBytes = 4096, kBlocks = 8;
    std::vector<unsigned char> device(kBlocks * kBlockBytes);
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 64u << 20;
    config.block_tokens = kTokens;
    config.setup = KVO_SETUP_EAGER;
    auto cache = kvoffload::cache::create(config);
    const kvo_part_t part{device.data(), kBlockBytes, kBlockBytes, kBlockBytes, 1, 0};
    kvo_group_config_t group = kvoffload::default_group();
    group.n_device_blocks = kBlocks;
    group.n_parts = 1;
    group.parts = &part;
    if (!cache || !cache->register_group(group) || !cache->start()) return std::puts(kvo_last_error()), 1;

    std::vector<uint32_t> prompt(3 * kTokens + 1), first{0, 1, 2, 3}, second{4, 5, 6, 7};
    std::iota(prompt.begin(), prompt.end(), 1000u);
    device[0] = 'k', device[2 * kBlockBytes] = 'v';  // what prefill would have written
    auto one = kvoffload::sequence::begin(*cache, kvo_ns_t{0});
    auto miss = one->lookup(prompt, 0);
    auto stored = one->prefilled(3 * kTokens, kvoffload::blocks_of(0, first), KVO_STREAM_IDLE);
    if (!miss || !stored || !cache->quiesce(kvoffload::forever)) return std::puts(kvo_last_error()), 1;

    auto two = kvoffload::sequence::begin(*cache, kvo_ns_t{0});
    auto hit = two->lookup(prompt, 0);
    auto op = two->prefill(kvoffload::blocks_of(0, second), hit->n_tokens, KVO_STREAM_IDLE);
    auto done = cache->wait(*op, kvoffload::forever);
    std::printf("first time %u tokens, second time %u: %c %c\n", miss->n_tokens, hit->n_tokens,
                device[4 * kBlockBytes], device[6 * kBlockBytes]);
    return done && done->n_done == 3 && device[6 * kBlockBytes] == 'v' ? 0 : 1;
}

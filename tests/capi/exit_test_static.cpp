// A cache in a static object, alive with copies in flight when the process ends: exit code 0, no hang.
// Also: a fork's child is answered with a status, and touches nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <kvoffload/kvoffload.hpp>
#include <vector>

namespace {

std::vector<unsigned char> device(64 * 65536);
kvoffload::cache kept;

}  // namespace

int main() {
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 64u << 20;
    config.block_tokens = 16;
    config.setup = KVO_SETUP_EAGER;
    auto cache = kvoffload::cache::create(config);
    const kvo_part_t part{device.data(), 65536, 65536, 65536, 1, 0};
    kvo_group_config_t group = kvoffload::default_group();
    group.n_device_blocks = 64;
    group.n_parts = 1;
    group.parts = &part;
    if (!cache || !cache->register_group(group) || !cache->start()) return std::puts(kvo_last_error()), 1;
    kept = std::move(*cache);

    const pid_t child = fork();
    if (child == 0) {
        kvo_match_t found;
        const kvo_key_t key{};
        _exit(kvo_probe(kept.get(), kvo_ns_t{0}, &key, 1, 0, &found) == KVO_E_FORKED ? 0 : 1);
    }
    int result = -1;
    waitpid(child, &result, 0);
    if (!WIFEXITED(result) || WEXITSTATUS(result) != 0) return std::puts("the child was not refused"), 1;

    std::vector<kvo_key_t> keys(64);
    std::vector<uint32_t> ids(64);
    for (uint32_t i = 0; i < 64; ++i) {
        keys[i].bytes[0] = static_cast<uint8_t>(i + 1);
        ids[i] = i;
    }
    kvo_store_options_t options = KVO_STORE_OPTIONS_INIT;
    options.flags = KVO_OP_DETACHED;
    const auto stored = kept.store(kvo_ns_t{0}, keys, nullptr, kvoffload::blocks_of(0, ids), KVO_STREAM_IDLE, &options);
    if (!stored) return std::puts(kvo_last_error()), 1;
    return 0;  // with the store on its way
}

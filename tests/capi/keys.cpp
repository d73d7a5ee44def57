// Keys of the sequence level are the same on any machine and in any process: fixed vectors. A change of any of
// them makes every stored block of older versions unreachable and needs a new ABI level.
#include <cstdio>
#include <cstring>
#include <kvoffload/kvoffload.hpp>
#include <string>
#include <vector>

namespace {

struct vector_case {
    const char* name;
    const char* ns;
    const char* salt;
    uint64_t hash_seed;
    bool has_extra;
    uint32_t block;
    const char* key;
};

const vector_case kCases[] = {
#include "keys.inc"
};

std::string hex(const kvo_key_t& key) {
    std::string text;
    char two[3];
    for (uint8_t b : key.bytes) {
        std::snprintf(two, sizeof two, "%02x", b);
        text += two;
    }
    return text;
}

std::string key_of(const vector_case& v) {
    std::vector<unsigned char> device(4 * 64);
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 32u << 20;
    config.block_tokens = 16;
    config.setup = KVO_SETUP_EAGER;
    config.hash_seed = v.hash_seed;
    config.fingerprint = "model";
    config.fingerprint_bytes = 5;
    auto cache = kvoffload::cache::create(config);
    const kvo_part_t part{device.data(), 64, 64, 64, 1, 0};
    kvo_group_config_t group = kvoffload::default_group();
    group.n_device_blocks = 4;
    group.n_parts = 1;
    group.parts = &part;
    if (!cache || !cache->register_group(group) || !cache->start()) return kvo_last_error();
    const auto ns = cache->open_namespace(v.ns);
    kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
    options.salt = v.salt;
    options.salt_bytes = std::strlen(v.salt);
    auto s = kvoffload::sequence::begin(*cache, *ns, &options);
    std::vector<uint32_t> tokens(49);
    for (uint32_t i = 0; i < 49; ++i) tokens[i] = i * i * 31 + 7;
    const uint8_t picture[] = {1, 2, 3, 4};
    if (v.has_extra && !s->extras(20, 6, {picture, 4})) return kvo_last_error();
    if (!s->lookup(tokens, 0)) return kvo_last_error();
    const auto key = s->key(v.block);
    return key ? hex(*key) : kvo_last_error();
}

}  // namespace

int main(int argc, char**) {
    int failures = 0;
    for (const auto& v : kCases) {
        const std::string key = key_of(v);
        if (argc > 1) std::printf("%s %s\n", v.name, key.c_str());
        if (key == v.key) continue;
        ++failures;
        std::printf("%s: %s, expected %s\n", v.name, key.c_str(), v.key);
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}

// Keys of the sequence level are the same on any machine and in any process: fixed vectors. A
// change of any of them makes every stored block of older versions unreachable and needs a new ABI
// level. With --dump SEED it checks nothing and prints sequences of seeded random input with their
// keys, as lines of JSON in the form of ../data/key_vectors.json, for keys_reference.py to compute
// again. One thread.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <kvoffload/kvoffload.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using bytes = std::vector<uint8_t>;

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

// What enters every key of a sequence.
struct setting {
    uint32_t block_tokens = 16;
    uint64_t hash_seed = 0;
    bytes fingerprint;
    std::string ns;
    bytes salt;
};

// A cache and one sequence in it. Does not move: the cache's group lies in it.
class opened {
public:
    explicit opened(const setting& from) {
        kvo_config_t config = kvoffload::default_config();
        config.budget_bytes = 32u << 20;
        config.block_tokens = from.block_tokens;
        config.max_seq_tokens = 1u << 16;
        config.hash_seed = from.hash_seed;
        config.fingerprint = from.fingerprint.data();
        config.fingerprint_bytes = from.fingerprint.size();
        auto made = kvoffload::cache::create(config);
        const kvo_part_t part{device_, 64, 64, 64, 1, 0};
        kvo_group_config_t group = kvoffload::default_group();
        group.n_device_blocks = 4;
        group.n_parts = 1;
        group.parts = &part;
        if (!made || !made->register_group(group) || !made->start()) return;
        cache_ = std::move(*made);
        const auto ns = cache_.open_namespace(from.ns);
        kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
        options.salt = from.salt.data();
        options.salt_bytes = from.salt.size();
        options.flags = KVO_SEQ_NO_STORE;
        if (!ns) return;
        auto begun = kvoffload::sequence::begin(cache_, *ns, &options);
        if (begun) seq = std::move(*begun);
    }
    opened(const opened&) = delete;
    opened& operator=(const opened&) = delete;

private:
    unsigned char device_[4 * 64] = {};
    kvoffload::cache cache_;

public:
    kvoffload::sequence seq;  // false when anything failed; ends before the cache does
};

std::string hex(const uint8_t* data, size_t n) {
    std::string text;
    char two[3];
    for (size_t i = 0; i < n; ++i) {
        std::snprintf(two, sizeof two, "%02x", data[i]);
        text += two;
    }
    return text;
}
std::string hex(const bytes& data) { return hex(data.data(), data.size()); }

std::string key_of(const kvoffload::sequence& seq, uint32_t block) {
    const auto key = seq.key(block);
    return key ? hex(key->bytes, sizeof key->bytes) : kvo_last_error();
}

std::string key_of(const vector_case& v) {
    const std::string salt = v.salt;
    const setting from{
        16, v.hash_seed, {'m', 'o', 'd', 'e', 'l'}, v.ns, {salt.begin(), salt.end()}};
    opened o(from);
    if (!o.seq) return kvo_last_error();
    std::vector<uint32_t> tokens(49);
    for (uint32_t i = 0; i < 49; ++i) tokens[i] = i * i * 31 + 7;
    const uint8_t picture[] = {1, 2, 3, 4};
    if (v.has_extra && !o.seq.extras(20, 6, {picture, 4})) return kvo_last_error();
    if (!o.seq.lookup(tokens, 0)) return kvo_last_error();
    return key_of(o.seq, v.block);
}

class dice {
public:
    explicit dice(uint64_t seed) : bits_(seed) {}
    uint64_t any() { return bits_(); }
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(bits_() % n); }
    uint32_t within(uint32_t least, uint32_t most) { return least + below(most - least + 1); }
    bool one_in(uint32_t n) { return below(n) == 0; }
    bytes some(uint32_t least, uint32_t most) {
        bytes out(within(least, most));
        for (uint8_t& b : out) b = static_cast<uint8_t>(any());
        return out;
    }
    std::vector<uint32_t> tokens(uint32_t n) {
        std::vector<uint32_t> out(n);
        for (uint32_t& t : out) t = one_in(16) ? UINT32_MAX : static_cast<uint32_t>(any());
        return out;
    }

private:
    std::mt19937_64 bits_;  // the same on any machine, unlike the library's distributions
};

setting random_setting(dice& d) {
    constexpr uint32_t kSizes[] = {1, 2, 5, 16, 64, 100, 256, 1024};
    const char* const kLetters[] = {"a", "Z", "7", "/", "-", " ", "\u00e9", "\u6f22"};
    setting out;
    out.block_tokens = kSizes[d.below(std::size(kSizes))];
    out.hash_seed = d.one_in(3) ? 0 : d.any();
    out.fingerprint = d.one_in(8) ? d.some(4096, 4096) : d.some(0, 40);
    out.salt = d.one_in(3) ? bytes{} : d.one_in(8) ? d.some(4096, 4096) : d.some(1, 300);
    for (uint32_t n = d.one_in(3) ? 0 : d.within(1, 60); n > 0; --n)
        out.ns += kLetters[d.below(std::size(kLetters))];
    return out;
}

struct extra {
    uint32_t begin, count;
    bytes content;
};

// A sequence that is given its input in pieces, and what it was given.
struct walk {
    kvoffload::sequence seq;
    std::vector<uint32_t> tokens{};
    std::vector<extra> extras{};
};

bool give(walk& w, const extra& e) {
    w.extras.push_back(e);
    return static_cast<bool>(w.seq.extras(e.begin, e.count, e.content));
}

// Up to n extras that begin within the next n_tokens tokens; some of them given twice.
bool give_extras(walk& w, uint32_t n, uint32_t n_tokens, uint32_t block_tokens, dice& d) {
    const auto known = static_cast<uint32_t>(w.tokens.size());
    uint32_t least = known;
    for (const extra& e : w.extras) least = std::max(least, e.begin);
    if (least >= known + n_tokens) return true;
    std::vector<uint32_t> begins(n);
    for (uint32_t& b : begins) b = d.within(least, known + n_tokens - 1);
    std::sort(begins.begin(), begins.end());
    for (const uint32_t begin : begins) {
        const extra e{begin, d.within(1, 3 * block_tokens),
                      d.one_in(16) ? d.some(1, 5000) : d.some(1, 200)};
        if (!give(w, e)) return false;
        const extra again = w.extras[d.below(static_cast<uint32_t>(w.extras.size()))];
        if (again.begin >= known && d.one_in(8) && !give(w, again)) return false;
    }
    return true;
}

// Tokens come as a longer prompt or as decoded ones, perhaps after others that are taken back.
bool give_tokens(walk& w, uint32_t n, dice& d) {
    const auto known = static_cast<uint32_t>(w.tokens.size());
    if (d.one_in(3)) {
        if (!w.seq.decode(d.tokens(d.within(1, n)), 0, {}, KVO_STREAM_IDLE)) return false;
        if (!w.seq.rewind(known, KVO_STREAM_IDLE)) return false;
    }
    const std::vector<uint32_t> more = d.tokens(n);
    w.tokens.insert(w.tokens.end(), more.begin(), more.end());
    if (d.one_in(2)) return static_cast<bool>(w.seq.decode(more, 0, {}, KVO_STREAM_IDLE));
    return static_cast<bool>(w.seq.lookup(w.tokens, 0));
}

bool go_on(walk& w, bool is_crowded, uint32_t block_tokens, dice& d) {
    for (uint32_t pieces = d.within(1, 3); pieces > 0; --pieces) {
        const uint32_t n = d.within(1, std::min(2500u, 4 * block_tokens + 8));
        const uint32_t n_extras = is_crowded ? d.within(65, 150) : d.below(4);
        if (!give_extras(w, n_extras, n, block_tokens, d) || !give_tokens(w, n, d)) return false;
    }
    return true;
}

// A fork has the first n tokens, and of the extras those that begin before.
bool fork(walk& from, uint32_t n, walk* out) {
    auto forked = from.seq.fork(n);
    if (!forked) return false;
    out->seq = std::move(*forked);
    out->tokens.assign(from.tokens.begin(), from.tokens.begin() + n);
    for (const extra& e : from.extras)
        if (e.begin < n) out->extras.push_back(e);
    return true;
}

void print(const std::string& name, const setting& from, const walk& w) {
    std::printf("{\"name\":\"%s\",\"block_tokens\":%u,\"hash_seed\":%llu,\"fingerprint\":\"%s\",",
                name.c_str(), from.block_tokens, static_cast<unsigned long long>(from.hash_seed),
                hex(from.fingerprint).c_str());
    std::printf("\"namespace\":\"%s\",\"salt\":\"%s\",\"tokens\":[", from.ns.c_str(),
                hex(from.salt).c_str());
    const char* comma = "";
    for (const uint32_t t : w.tokens) std::printf("%s%u", std::exchange(comma, ","), t);
    std::printf("],\"extras\":[");
    comma = "";
    for (const extra& e : w.extras) {
        std::printf("%s{\"begin\":%u,\"count\":%u,\"bytes\":\"%s\"}", std::exchange(comma, ","),
                    e.begin, e.count, hex(e.content).c_str());
    }
    std::printf("],\"keys\":[");
    comma = "";
    for (uint32_t i = 0; i < w.tokens.size() / from.block_tokens; ++i)
        std::printf("%s\"%s\"", std::exchange(comma, ","), key_of(w.seq, i).c_str());
    std::printf("]}\n");
}

// One sequence, and another one that parts from it midway.
bool dump_case(uint32_t i, dice& d) {
    const std::string name = "random " + std::to_string(i);
    const setting from = random_setting(d);
    const bool is_crowded = i % 10 == 9;
    opened o(from);
    walk w{std::move(o.seq)}, other;
    if (!w.seq || !go_on(w, is_crowded, from.block_tokens, d)) return false;
    const uint32_t n = d.below(static_cast<uint32_t>(w.tokens.size()) + 1);
    if (!fork(w, n, &other) || !go_on(other, false, from.block_tokens, d)) return false;
    if (!go_on(w, false, from.block_tokens, d)) return false;
    print(name, from, w);
    print(name + ", fork at " + std::to_string(n), from, other);
    return true;
}

int dump(uint64_t seed) {
    constexpr uint32_t kDumped = 50;
    dice d(seed);
    for (uint32_t i = 0; i < kDumped; ++i) {
        if (dump_case(i, d)) continue;
        std::fprintf(stderr, "random %u: %s\n", i, kvo_last_error());
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--dump") == 0)
        return dump(std::strtoull(argv[2], nullptr, 0));
    int failures = 0;
    for (const auto& v : kCases) {
        const std::string key = key_of(v);
        if (key == v.key) continue;
        ++failures;
        std::printf("%s: %s, expected %s\n", v.name, key.c_str(), v.key);
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}

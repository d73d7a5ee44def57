// The hooks in the order in which a server calls them, with an asynchronous CPU "device": prefill in chunks,
// decode, speculation that is rejected, preemption, end. Attention is faked: a KV byte is a hash of all
// tokens up to its own, so the program can check what comes back.
#include <cstdio>
#include <cstdlib>
#include <kvoffload/kvoffload.hpp>
#include <vector>

namespace {

constexpr uint32_t kTokens = 16, kBytes = 64, kBlocks = 16;  // tokens a block, bytes a token, device blocks

void check(kvoffload::status s, const char* what) {
    if (s) return;
    std::fprintf(stderr, "%s: %s: %s\n", what, s.name(), kvo_last_error());
    std::exit(1);
}

struct fake_step {  // what the engine queues on its stream
    std::vector<unsigned char>* memory;
    std::vector<uint32_t> tokens, table;
    uint32_t first;
    static unsigned char value(const std::vector<uint32_t>& tokens, uint32_t position) {
        uint32_t h = 1;
        for (uint32_t p = 0; p <= position; ++p) h = (h ^ tokens[p]) * 16777619u;
        return static_cast<unsigned char>(h >> 24);
    }
    static void run(void* self) {
        auto* s = static_cast<fake_step*>(self);
        for (uint32_t p = s->first; p < s->tokens.size(); ++p) {
            unsigned char* at = &(*s->memory)[(s->table[p / kTokens] * kTokens + p % kTokens) * kBytes];
            for (uint32_t i = 0; i < kBytes; ++i) at[i] = value(s->tokens, p);
        }
        delete s;
    }
};

kvoffload::cache make_cache(std::vector<unsigned char>& memory) {
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 64u << 20;
    config.block_tokens = kTokens;
    config.setup = KVO_SETUP_EAGER;
    auto cache = kvoffload::cache::create(config);
    check(cache.error(), "create");
    const kvo_part_t part{memory.data(), kTokens * kBytes, kTokens * kBytes, kTokens * kBytes, 1, 0};
    kvo_group_config_t group = kvoffload::default_group();
    group.n_device_blocks = kBlocks;
    group.n_parts = 1;
    group.parts = &part;
    check(cache->register_group(group).error(), "register");
    check(cache->start(), "start");
    return std::move(*cache);
}

}  // namespace

int main() {
    std::vector<unsigned char> memory(kBlocks * kTokens * kBytes);
    auto cache = make_cache(memory);
    void* stream = nullptr;
    check(kvo_host_stream_create(&stream), "stream");
    const auto compute = [&](const std::vector<uint32_t>& tokens, const std::vector<uint32_t>& table, uint32_t first) {
        check(kvo_host_stream_run(stream, fake_step::run, new fake_step{&memory, tokens, table, first}), "step");
    };

    // A request: lookup before blocks exist, prefill in two chunks, then decode.
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < 50; ++i) tokens.push_back(i * 7 + 3);
    const std::vector<uint32_t> table{0, 1, 2, 3, 4};
    const kvo_blocks_t blocks = kvoffload::blocks_of(0, table);
    auto a = kvoffload::sequence::begin(cache, kvo_ns_t{0});
    check(a.error(), "begin");
    auto found = a->lookup(tokens, 0);
    check(found.error(), "lookup");
    compute({tokens.begin(), tokens.begin() + 32}, table, 0);
    check(a->prefilled(32, blocks, stream), "first chunk");
    compute(tokens, table, 32);
    check(a->prefilled(50, blocks, stream), "second chunk");
    for (uint32_t step = 0; step < 16; ++step) {
        const uint32_t next = 900 + step;
        check(a->decode(next, static_cast<uint32_t>(tokens.size()), blocks, stream), "decode");
        tokens.push_back(next);
        compute(tokens, table, static_cast<uint32_t>(tokens.size()) - 1);
    }
    // Speculation: two guesses, both rejected.
    const uint32_t guesses[] = {1, 2};
    check(a->decode({guesses, 2}, static_cast<uint32_t>(tokens.size()), blocks, stream), "guesses");
    check(a->rewind(static_cast<uint32_t>(tokens.size()), stream), "rewind");

    // Preempted: the blocks go to somebody else, behind a fence.
    check(a->preempt(), "preempt");
    check(cache.fence(blocks, stream, KVO_FENCE_FINISH), "fence");
    compute(std::vector<uint32_t>(80, 5), table, 0);
    check(kvo_host_stream_sync(stream), "sync");
    check(cache.quiesce(kvoffload::forever), "quiesce");

    // It comes back elsewhere: everything whole comes from the host, and the stream waits for it.
    const std::vector<uint32_t> table2{8, 9, 10, 11, 12};
    found = a->lookup(tokens, 0);
    check(found.error(), "lookup again");
    auto op = a->prefill(kvoffload::blocks_of(0, table2), found->n_tokens, stream);
    check(op.error(), "prefill");
    check(cache.wait_stream(*op, stream), "wait");
    check(kvo_host_stream_sync(stream), "sync");
    auto done = cache.wait(*op, kvoffload::forever);
    check(done.error(), "completion");
    bool right = done->status == KVO_OK;
    for (uint32_t p = 0; p < found->n_tokens; ++p) {
        const unsigned char* at = &memory[(table2[p / kTokens] * kTokens + p % kTokens) * kBytes];
        right = right && at[0] == fake_step::value(tokens, p) && at[kBytes - 1] == at[0];
    }
    check(a->end(), "end");
    check(kvo_host_stream_destroy(stream), "destroy stream");
    std::printf("%u of %zu tokens came back after preemption: %s\n", found->n_tokens, tokens.size(),
                right ? "right" : "WRONG");
    return right && found->n_tokens == 64 ? 0 : 1;
}

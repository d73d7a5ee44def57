#include "serve/offload.hpp"

#include <fmt/core.h>
#include <time.h>

#include <cstring>
#include <kvoffload/kvoffload.hpp>
#include <unordered_map>

namespace engine {

namespace {

uint64_t thread_cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Adds the CPU time of its life to a counter.
class call_timer {
public:
    explicit call_timer(uint64_t* total) : total_(total), start_(thread_cpu_ns()) {}
    ~call_timer() { *total_ += thread_cpu_ns() - start_; }

private:
    uint64_t* total_;
    uint64_t start_;
};

constexpr uint32_t kRunning = UINT32_MAX;

class tier;

class offloaded_sequence final : public reuse_sequence {
public:
    offloaded_sequence(tier& owner, kvoffload::sequence s) : owner_(owner), sequence_(std::move(s)) {}
    ~offloaded_sequence() override;

    uint32_t lookup(std::span<const uint32_t> tokens, uint32_t n_local) override;
    bool load(std::span<const uint32_t> block_table, uint32_t n_tokens) override;
    uint32_t loaded() override { return n_loaded_; }
    void prefilled(uint32_t n_computed, std::span<const uint32_t> block_table) override;
    void decoded(uint32_t new_token, uint32_t n_computed, std::span<const uint32_t> block_table) override;
    void preempt() override;

    void load_over(const kvo_completion_t& c);

private:
    tier& owner_;
    kvoffload::sequence sequence_;
    std::vector<uint32_t> tokens_;       // as last looked up
    std::vector<uint32_t> table_;        // blocks being loaded
    uint32_t n_local_ = 0, n_wanted_ = 0;
    uint32_t n_loaded_ = 0;
    kvo_op_t op_{0};
};

class tier final : public offload_tier {
public:
    tier(kv_pool& pool, kvoffload::cache c) : pool_(pool), cache_(std::move(c)) {}

    std::unique_ptr<reuse_sequence> begin() override {
        const call_timer timer(&cpu_ns_calls_);
        auto s = kvoffload::sequence::begin(cache_, kvo_ns_t{0});
        // Without a sequence the request simply computes: the cache is never a reason to fail.
        return std::make_unique<offloaded_sequence>(*this, s ? std::move(*s) : kvoffload::sequence());
    }

    void fence(std::span<const uint32_t> blocks) override {
        const call_timer timer(&cpu_ns_calls_);
        const kvo_blocks_t list = kvoffload::blocks_of(0, {blocks.data(), blocks.size()});
        while (cache_.fence(list, KVO_STREAM_IDLE, KVO_FENCE_DROP) == kvoffload::status(KVO_E_NOT_READY)) {
            poll(std::chrono::microseconds(100));
        }
    }

    void progress(bool idle) override {
        const call_timer timer(&cpu_ns_calls_);
        poll(idle ? std::chrono::microseconds(200) : std::chrono::microseconds(0));
    }

    void settle() override {
        while (cache_.quiesce(std::chrono::seconds(1)) == kvoffload::status(KVO_E_TIMEOUT)) {
        }
        poll(std::chrono::nanoseconds(0));
    }

    void reset() override {
        settle();
        (void)cache_.reset();
    }

    reuse_report report() override {
        reuse_report r;
        const auto s = cache_.stats();
        if (!s) return r;
        r.load_bytes = s->load_bytes;
        r.store_bytes = s->store_bytes;
        r.load_ns = s->load_ns;
        r.store_ns = s->store_ns;
        r.stored_blocks = s->stored_blocks;
        r.evicted_blocks = s->evicted_blocks;
        r.evicted_before_reuse = s->evicted_before_reuse;
        r.budget_bytes = s->budget_bytes;
        r.resident_bytes = s->metadata_bytes + s->pool_touched_bytes;
        r.cpu_ns_threads = s->cpu_ns_worker + s->cpu_ns_copy;
        r.cpu_ns_calls = cpu_ns_calls_;
        return r;
    }
    void spoil_loads() override { spoils_ = true; }

    // Takes what is finished; waits up to `patience` for the first one.
    void poll(std::chrono::nanoseconds patience) {
        kvo_completion_t done[16];
        if (patience.count() > 0 && !loads_.empty()) {
            kvo_completion_t one{};
            const kvo_op_t op{loads_.begin()->first};
            const auto c = cache_.wait(op, patience);
            if (c) hear((one = *c));
        }
        while (true) {
            const auto n = cache_.poll({done, 16}, std::chrono::nanoseconds(0));
            if (!n || *n == 0) return;
            for (uint32_t i = 0; i < *n; ++i) hear(done[i]);
        }
    }
    void expect(kvo_op_t op, offloaded_sequence* who) { loads_[op.value] = who; }
    void forget(kvo_op_t op) {
        const auto it = loads_.find(op.value);
        if (it != loads_.end()) it->second = nullptr;
    }
    // For the proof that the comparison can fail.
    void maybe_spoil(std::span<const uint32_t> loaded_blocks) {
        if (!spoils_ || loaded_blocks.empty()) return;
        for (const auto& part : pool_.parts()) {
            std::memset(static_cast<uint8_t*>(part.base) + loaded_blocks.back() * part.stride, 0, part.bytes);
        }
    }
    kvoffload::cache& cache() { return cache_; }
    uint64_t* cpu_ns_calls() { return &cpu_ns_calls_; }
    uint32_t block_tokens() const { return pool_.block_tokens(); }

private:
    void hear(const kvo_completion_t& c) {
        const auto it = loads_.find(c.op.value);
        if (it == loads_.end()) return;
        if (it->second != nullptr) it->second->load_over(c);
        loads_.erase(it);
    }

    kv_pool& pool_;
    kvoffload::cache cache_;
    std::unordered_map<uint64_t, offloaded_sequence*> loads_;
    bool spoils_ = false;
    uint64_t cpu_ns_calls_ = 0;
};

offloaded_sequence::~offloaded_sequence() {
    const call_timer timer(owner_.cpu_ns_calls());
    if (op_.value != 0) owner_.forget(op_);
    (void)sequence_.end();
}

uint32_t offloaded_sequence::lookup(std::span<const uint32_t> tokens, uint32_t n_local) {
    const call_timer timer(owner_.cpu_ns_calls());
    n_local_ = n_local;
    n_loaded_ = 0;
    if (!sequence_) return n_local;
    tokens_.assign(tokens.begin(), tokens.end());
    const auto found = sequence_.lookup({tokens.data(), tokens.size()}, n_local);
    return found ? std::max(found->n_tokens, n_local) : n_local;
}

bool offloaded_sequence::load(std::span<const uint32_t> block_table, uint32_t n_tokens) {
    const call_timer timer(owner_.cpu_ns_calls());
    const kvo_blocks_t list = kvoffload::blocks_of(0, {block_table.data(), block_table.size()});
    const auto op = sequence_.prefill(list, n_tokens, KVO_STREAM_IDLE);
    if (!op) return false;
    const uint32_t bt = owner_.block_tokens();
    table_.assign(block_table.begin() + n_local_ / bt, block_table.begin() + n_tokens / bt);
    n_wanted_ = n_tokens;
    n_loaded_ = kRunning;
    op_ = *op;
    owner_.expect(op_, this);
    return true;
}

// A failed load is a miss: what came before the first bad block is right, the rest is computed again.
void offloaded_sequence::load_over(const kvo_completion_t& c) {
    op_ = {0};
    const uint32_t bt = owner_.block_tokens();
    n_loaded_ = n_wanted_;
    if (c.status != KVO_OK) {
        n_loaded_ = n_local_ / bt * bt + c.first_bad * bt;
        (void)sequence_.rewind(n_loaded_, KVO_STREAM_IDLE);
        (void)sequence_.lookup(tokens_, n_loaded_);  // the tokens behind the cut are still the prompt's
    }
    owner_.maybe_spoil(table_);
}

void offloaded_sequence::prefilled(uint32_t n_computed, std::span<const uint32_t> block_table) {
    const call_timer timer(owner_.cpu_ns_calls());
    const kvo_blocks_t list = kvoffload::blocks_of(0, {block_table.data(), block_table.size()});
    if (sequence_) (void)sequence_.prefilled(n_computed, list, KVO_STREAM_IDLE);
}

void offloaded_sequence::decoded(uint32_t new_token, uint32_t n_computed, std::span<const uint32_t> block_table) {
    const call_timer timer(owner_.cpu_ns_calls());
    const kvo_blocks_t list = kvoffload::blocks_of(0, {block_table.data(), block_table.size()});
    if (sequence_) (void)sequence_.decode(new_token, n_computed, list, KVO_STREAM_IDLE);
}

void offloaded_sequence::preempt() {
    const call_timer timer(owner_.cpu_ns_calls());
    if (sequence_) (void)sequence_.preempt();
}

}  // namespace

std::unique_ptr<offload_tier> make_offload_tier(kv_pool& pool, const offload_config& config, std::string* error) {
    kvo_config_t c = kvoffload::default_config();
    c.budget_bytes = config.budget_bytes;
    c.block_tokens = pool.block_tokens();
    c.policy = config.arc ? KVO_POLICY_ARC : KVO_POLICY_LRU;
    c.fingerprint = config.fingerprint.data();
    c.fingerprint_bytes = config.fingerprint.size();
    // Records for what this engine can have in flight, instead of the defaults for large servers.
    c.max_ops = 256;
    c.max_inflight_blocks = 4096;
    c.max_tickets = 64;
    c.max_seqs = 64;
    c.max_seq_tokens = 1 << 17;
    auto cache = kvoffload::cache::create(c);
    std::vector<kvo_part_t> parts;
    for (const auto& p : pool.parts()) parts.push_back({p.base, p.stride, p.bytes, p.bytes, 1, 0});
    kvo_group_config_t group = kvoffload::default_group();
    group.name = "kv";
    group.n_device_blocks = pool.n_blocks();
    group.n_parts = static_cast<uint32_t>(parts.size());
    group.parts = parts.data();
    kvoffload::status ok = cache.error();
    if (ok) ok = cache->register_group(group).error();
    if (ok) ok = cache->start();
    if (!ok) {
        *error = fmt::format("kvoffload: {}: {}", ok.name(), kvoffload::status::last_error());
        return nullptr;
    }
    return std::make_unique<tier>(pool, std::move(*cache));
}

}  // namespace engine

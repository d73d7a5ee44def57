#include "serve/reuse.hpp"

namespace engine {

namespace {

class no_sequence final : public reuse_sequence {
public:
    uint32_t lookup(std::span<const uint32_t>, uint32_t n_local) override { return n_local; }
    bool load(std::span<const uint32_t>, uint32_t) override { return false; }
    uint32_t loaded() override { return 0; }
    void prefilled(uint32_t, std::span<const uint32_t>) override {}
    void decoded(uint32_t, uint32_t, std::span<const uint32_t>) override {}
    void preempt() override {}
};

class no_tier final : public reuse_tier {
public:
    std::unique_ptr<reuse_sequence> begin() override { return std::make_unique<no_sequence>(); }
    void fence(std::span<const uint32_t>) override {}
    void progress(bool) override {}
    void settle() override {}
    reuse_report report() override { return {}; }
    void spoil_loads() override {}
};

}  // namespace

void reuse_report::subtract_counters(const reuse_report& earlier) {
    for (auto counter : {&reuse_report::load_bytes, &reuse_report::store_bytes,
                         &reuse_report::load_ns, &reuse_report::store_ns,
                         &reuse_report::stored_blocks, &reuse_report::evicted_blocks,
                         &reuse_report::evicted_before_reuse, &reuse_report::cpu_ns_threads,
                         &reuse_report::cpu_ns_calls}) {
        this->*counter -= earlier.*counter;
    }
}

std::unique_ptr<reuse_tier> make_no_tier() { return std::make_unique<no_tier>(); }

}  // namespace engine

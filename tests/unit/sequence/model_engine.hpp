// A small engine that does everything the hooks allow in random order: admits prompts that share beginnings,
// loads with and without waiting, computes in chunks, decodes with rejected drafts, goes back, forks, preempts
// and cancels, on a device pool that is too small. What it computes depends on all bytes before it, so a wrong
// block that comes back anywhere is seen by check(). One thread; all choices come from one seed.
#pragma once

#include <map>
#include <memory>
#include <random>

#include "support/seq_rig.hpp"

namespace kvo::test {

class model_engine {
public:
    struct chances {
        bool faults = false;  // copies, batches and records fail now and then
        bool resets = false;
    };
    model_engine(seq_rig& r, uint64_t seed, chances c) : rig(r), random_(seed), chances_(c) {
        for (uint32_t b = 0; b < rig.setup.n_device_blocks - kAuditBlocks; ++b) free_.push_back(b);
        refs_.resize(rig.setup.n_device_blocks);
    }

    void step() {
        if (chances_.faults && one_in(15)) inject();
        if (chances_.resets && one_in(150)) REQUIRE(rig.c->reset() == KVO_OK);
        if (requests_.size() < 8 && one_in(4)) admit();
        if (!requests_.empty()) act(*requests_[random_() % requests_.size()]);
        move_on();
    }
    // Everything at rest, failed loads repaired, then each block of each request as it must be.
    void check() {
        calm();
        for (int i = 0; i < 3; ++i) {
            rig.settle();
            take_completions();
            for (auto& r : requests_) repair(*r);
        }
        rig.settle();
        take_completions();
        for (auto& r : requests_) {
            INFO("request of " << r->tokens.size() << " tokens, " << r->n_computed << " computed");
            REQUIRE(rig.n_right(r->table, r->tokens, r->n_computed) == r->n_computed);
        }
        audit();
    }
    void end_all() {
        while (!requests_.empty()) end(*requests_.back());
        check();
    }
    uint64_t n_reused = 0, n_failed_loads = 0, n_forks = 0, n_preempted = 0, n_rewound = 0, n_audited = 0;

private:
    static constexpr uint32_t kAuditBlocks = 16;
    struct request {
        kvo_seq_t seq{};
        tokens_t tokens;
        std::vector<uint32_t> table;
        uint32_t n_computed = 0;
        bool admitted = false;   // has device blocks
        bool repairing = false;
    };

    bool one_in(uint32_t n) { return random_() % n == 0; }
    uint32_t below(uint64_t n) { return static_cast<uint32_t>(random_() % n); }

    void calm() {
        rig.device.fail_execution = rig.device.fail_batch = rig.device.fail_record = step_device::kNever;
    }
    void inject() {
        const uint32_t what = below(3);
        if (what == 0) rig.device.fail_execution = below(12);
        if (what == 1) rig.device.fail_batch = below(4);
        if (what == 2) rig.device.fail_record = below(6);
        rig.device.fail_batch_after = below(3);
    }
    void move_on() {
        const uint32_t how = below(5);
        if (how >= 1) take_completions();
        if (how == 2) rig.device.run_stream(rig.stream, below(4));
        if (how >= 3) rig.device.run();
    }

    // A call that could not place its wait on the stream yet is made again; nothing is written before.
    template <typename Call>
    status until_ready(Call call) {
        status result = KVO_E_NOT_READY;
        for (int i = 0; i < 100 && result == KVO_E_NOT_READY; ++i) {
            result = call();
            if (result == KVO_E_NOT_READY) take_completions();
        }
        return result;
    }

    // ---- device blocks ----
    void give(uint32_t b) {
        if (--refs_[b] == 0) free_.push_back(b);
    }
    void give_all(request& r) {
        for (const uint32_t b : r.table) give(b);
        r.table.clear();
    }
    // Room for n tokens; what was in new blocks is destroyed on the stream, behind our own copies.
    bool grow(request& r, uint32_t n) {
        const uint32_t per = rig.device_block_tokens(), need = (n + 15) / 16 * 16 / per;
        if (need > r.table.size() + free_.size()) return false;
        std::vector<uint32_t> fresh;
        while (r.table.size() < need) {
            const uint32_t i = below(free_.size());
            fresh.push_back(free_[i]);
            r.table.push_back(free_[i]);
            ++refs_[free_[i]];
            free_[i] = free_.back();
            free_.pop_back();
        }
        if (fresh.empty()) return true;
        const auto mode = one_in(3) ? KVO_FENCE_FINISH : KVO_FENCE_DROP;
        REQUIRE(until_ready([&] { return rig.c->fence(rig.lists(fresh), rig.stream, mode); }) == KVO_OK);
        rig.scribble_later(fresh);
        return true;
    }

    // ---- life of a request ----
    void admit() {
        auto r = std::make_unique<request>();
        const uint32_t family = below(4), shared = below(120);
        const tokens_t base = make_tokens(200, family + 1);
        r->tokens = tokens_t(base.begin(), base.begin() + shared) + make_tokens(1 + below(60), 50 + below(6));
        known_.push_back(r->tokens);
        r->seq = rig.begin();
        requests_.push_back(std::move(r));
    }
    void end(request& r) {
        known_.push_back(r.tokens);
        REQUIRE(rig.s->end(r.seq) == KVO_OK);
        give_all(r);
        for (auto it = requests_.begin(); it != requests_.end(); ++it) {
            if (it->get() != &r) continue;
            requests_.erase(it);
            return;
        }
    }
    void preempt(request& r) {
        REQUIRE(rig.s->preempt(r.seq) == KVO_OK);
        give_all(r);
        r.n_computed = 0;
        r.admitted = false;
        ++n_preempted;
    }
    void start(request& r) {
        const auto n = static_cast<uint32_t>(r.tokens.size());
        const seq_rig::found f = rig.lookup(r.seq, r.tokens);
        REQUIRE(f.result == KVO_OK);
        if (f.state == KVO_LOOKUP_PENDING && one_in(2)) return;
        if (!grow(r, n)) {
            request& victim = *requests_[below(requests_.size())];
            if (one_in(2)) preempt(victim);
            return;
        }
        r.admitted = true;
        r.n_computed = 0;
        if (f.n == 0 || one_in(10)) return;
        const uint32_t part = one_in(4) ? (1 + below(f.n / 16)) * 16 : f.n;
        status result = KVO_OK;
        const kvo_op_t op = rig.prefill(r.seq, r.table, part, &result);
        if (result != KVO_OK || op.value == 0) return;  // then it is computed
        if (one_in(12)) REQUIRE(rig.c->op_cancel(op) == KVO_OK);
        // The engine goes on as if the load had succeeded.
        const status waits = until_ready([&] { return rig.c->op_wait_stream(op, rig.stream, 0); });
        if (waits != KVO_OK) repairs_due_ = true;
        r.n_computed = part;
        n_reused += part;
    }
    void chunk(request& r) {
        const auto n = static_cast<uint32_t>(r.tokens.size());
        const uint32_t to = std::min(n, r.n_computed + 1 + below(70));
        rig.compute(r.table, r.tokens, r.n_computed, to);
        r.n_computed = to;
        (void)rig.prefilled(r.seq, r.table, to);
    }
    void decode(request& r) {
        const auto n = static_cast<uint32_t>(r.tokens.size());
        const uint32_t n_drafts = 1 + below(4), n_good = 1 + below(n_drafts);
        if (n > 230 || !grow(r, n + n_drafts)) return;
        const tokens_t drafts = make_tokens(n_drafts, 200 + below(3));
        const tokens_t with = r.tokens + drafts;
        rig.compute(r.table, with, n, n + n_drafts);
        (void)rig.s->decode(r.seq, drafts, n_good == n_drafts ? n + n_drafts : n, rig.lists(r.table), rig.stream);
        if (n_good < n_drafts) {
            rewind(r, with, n + n_good);
            rig.compute(r.table, r.tokens, n, n + n_good);
            (void)rig.prefilled(r.seq, r.table, n + n_good);
        }
        r.tokens = tokens_t(with.begin(), with.begin() + n + n_good);
        r.n_computed = n + n_good;
    }
    void go_back(request& r, uint32_t to) {
        REQUIRE(until_ready([&] { return rig.s->rewind(r.seq, to, rig.stream); }) == KVO_OK);
    }
    void rewind(request& r, const tokens_t& from, uint32_t to) {
        go_back(r, to);
        r.tokens = tokens_t(from.begin(), from.begin() + to);
        r.n_computed = std::min(r.n_computed, to);
        ++n_rewound;
    }
    // Another answer from an earlier token on; blocks that a fork shares are not written again.
    void change_mind(request& r) {
        uint32_t first_own = 0;
        const uint32_t per = rig.device_block_tokens();
        for (uint32_t i = 0; i < r.table.size(); ++i) {
            if (refs_[r.table[i]] > 1) first_own = i + 1;
        }
        const uint32_t low = std::max(first_own * per, 1u), n = r.n_computed;
        if (n != r.tokens.size() || low >= n) return;
        const uint32_t to = low + below(n - low);
        known_.push_back(r.tokens);
        rewind(r, r.tokens, to);
        if (to % per != 0) rig.compute(r.table, r.tokens, to / per * per, to);
        const tokens_t other = make_tokens(1 + below(20), 300 + below(3));
        const auto now = static_cast<uint32_t>(r.tokens.size());
        const tokens_t all = r.tokens + other;
        if (!grow(r, static_cast<uint32_t>(all.size()))) return;
        rig.compute(r.table, all, now / per * per, static_cast<uint32_t>(all.size()));
        r.tokens = all;
        r.n_computed = static_cast<uint32_t>(all.size());
        (void)rig.s->decode(r.seq, other, r.n_computed, rig.lists(r.table), rig.stream);
    }
    void fork(request& r) {
        const uint32_t per = rig.device_block_tokens(), n = r.n_computed;
        if (requests_.size() >= 8 || n != r.tokens.size() || free_.size() < 4) return;
        auto child = std::make_unique<request>();
        REQUIRE(rig.s->fork(r.seq, n, &child->seq) == KVO_OK);
        child->tokens = r.tokens;
        child->n_computed = n;
        child->admitted = true;
        for (uint32_t i = 0; i < n / per; ++i) {
            child->table.push_back(r.table[i]);
            ++refs_[r.table[i]];
        }
        REQUIRE(grow(*child, n));
        if (n % per != 0) rig.copy_block(r.table[n / per], child->table[n / per]);
        ++n_forks;
        requests_.push_back(std::move(child));
    }
    void act(request& r) {
        if (one_in(40)) return end(r);
        if (repairs_due_) {
            repairs_due_ = false;
            for (auto& one : requests_) repair(*one);
        }
        if (!r.admitted) return start(r);
        if (one_in(30)) return preempt(r);
        if (r.n_computed < r.tokens.size()) return chunk(r);
        if (one_in(8)) return fork(r);
        if (one_in(12)) return change_mind(r);
        if (r.tokens.size() > 180 && one_in(3)) return end(r);
        decode(r);
    }

    // ---- loads that failed ----
    void take_completions() {
        kvo_completion_t done[16];
        uint32_t n = 0;
        do {
            REQUIRE(rig.c->poll(done, 16, 0, &n) == KVO_OK);
            for (uint32_t i = 0; i < n; ++i) {
                if (done[i].kind != KVO_OP_LOAD || done[i].status == KVO_OK) continue;
                ++n_failed_loads;
                repairs_due_ = true;
            }
        } while (n > 0);
    }
    void repair(request& r) {
        const uint32_t bad = rig.info(r.seq).poisoned_from;
        if (bad == UINT32_MAX || !r.admitted) return;
        go_back(r, bad);
        REQUIRE(rig.info(r.seq).poisoned_from == UINT32_MAX);
        REQUIRE(rig.lookup(r.seq, r.tokens, bad).result == KVO_OK);
        const uint32_t until = r.n_computed;
        if (until <= bad) return;
        rig.compute(r.table, r.tokens, bad, until);
        (void)rig.prefilled(r.seq, r.table, until);
    }

    // What the cache would give a newcomer, byte for byte.
    void audit() {
        for (int i = 0; i < 6 && !known_.empty(); ++i) {
            const tokens_t& tokens = known_[below(known_.size())];
            const kvo_seq_t seq = rig.begin();
            const seq_rig::found f = rig.lookup(seq, tokens);
            REQUIRE(f.result == KVO_OK);
            const uint32_t per = rig.device_block_tokens();
            const uint32_t n = std::min(f.n, kAuditBlocks * per / 16 * 16);
            if (n > 0) {
                std::vector<uint32_t> scratch;
                for (uint32_t b = 0; b < n / per; ++b) scratch.push_back(rig.setup.n_device_blocks - kAuditBlocks + b);
                rig.scribble(scratch);
                const kvo_completion_t done = rig.take(rig.prefill(seq, scratch, n));
                REQUIRE(done.status == KVO_OK);
                REQUIRE(rig.n_right(scratch, tokens, n) == n);
                n_audited += n;
            }
            REQUIRE(rig.s->end(seq) == KVO_OK);
        }
        if (known_.size() > 40) known_.erase(known_.begin(), known_.begin() + 20);
    }

    seq_rig& rig;
    std::mt19937_64 random_;
    chances chances_;
    std::vector<uint32_t> free_, refs_;
    std::vector<std::unique_ptr<request>> requests_;
    std::vector<tokens_t> known_;
    bool repairs_due_ = false;
};

}  // namespace kvo::test

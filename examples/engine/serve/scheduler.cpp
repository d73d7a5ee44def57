#include "serve/scheduler.hpp"

#include <algorithm>
#include <chrono>

namespace engine {

uint64_t wall_ns() {
    const auto t = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
}

scheduler::scheduler(const scheduler_config& config, block_pool& pool, reuse_tier& tier,
                     forward_fn forward)
    : config_(config), pool_(pool), tier_(tier), forward_(std::move(forward)) {}

bool scheduler::submit(request* r) {
    const size_t most = r->spec->prompt.size() + r->spec->max_answer;
    if (most > size_t{pool_.n_blocks()} * config_.block_tokens) return false;
    r->tokens = r->spec->prompt;
    r->arrived_ns = wall_ns();
    waiting_.push_back(r);
    return true;
}

// Room for everything the request knows and one token more is taken at once, so that a prefill once begun
// is never stopped halfway by its own chunks.
bool scheduler::admit_one(request& r) {
    const auto n_needed =
        static_cast<uint32_t>((r.tokens.size() + config_.block_tokens) / config_.block_tokens);
    block_pool::prefix local = pool_.match(r.tokens);
    const auto n_matched = static_cast<uint32_t>(local.blocks.size());
    auto fresh = pool_.allocate(n_needed - n_matched);
    if (!fresh) {
        pool_.release(local.blocks);
        return false;
    }
    tier_.fence(*fresh);
    r.table = std::move(local.blocks);
    r.table.insert(r.table.end(), fresh->begin(), fresh->end());
    r.chain = local.chain;
    r.n_published = n_matched;
    r.n_local = r.n_computed = n_matched * config_.block_tokens;
    counts_.reused_device_tokens += r.n_local;

    if (!r.sequence) r.sequence = tier_.begin();
    const uint32_t n_hit = r.sequence->lookup(r.tokens, r.n_local);
    const bool loads = n_hit > r.n_local && r.sequence->load(r.table, n_hit);
    r.at = loads ? request::phase::loading : request::phase::prefill;
    return true;
}

void scheduler::admit() {
    while (!waiting_.empty() && running_.size() < config_.max_running) {
        request* r = waiting_.front();
        if (!admit_one(*r)) return;
        waiting_.pop_front();
        running_.push_back(r);
    }
}

void scheduler::finish_loads() {
    for (request* r : running_) {
        if (r->at != request::phase::loading) continue;
        const uint32_t n_good = r->sequence->loaded();
        if (n_good == UINT32_MAX) continue;
        if (n_good > r->n_local) counts_.reused_host_tokens += n_good - r->n_local;
        r->n_computed = std::max(n_good, r->n_local);
        r->at = request::phase::prefill;
        publish(*r);
    }
}

void scheduler::publish(request& r) {
    const uint32_t bt = config_.block_tokens;
    for (; (r.n_published + 1) * bt <= r.n_computed; ++r.n_published) {
        const std::span<const uint32_t> tokens(r.tokens.data() + size_t{r.n_published} * bt, bt);
        r.chain = pool_.publish(r.table[r.n_published], r.chain, tokens);
    }
}

void scheduler::preempt(request& r) {
    r.sequence->preempt();
    pool_.release(r.table);
    r.table.clear();
    r.n_computed = r.n_local = r.n_published = 0;
    r.chain = 0;
    r.at = request::phase::waiting;
    waiting_.push_front(&r);
    running_.erase(std::find(running_.begin(), running_.end(), &r));
    ++counts_.preemptions;
}

// Takes blocks from the youngest others until one is free. The oldest request always gets its block, so
// the engine always moves on. A request whose load is running is no victim: its blocks are being written.
bool scheduler::room_for_next_token(request& r) {
    if (r.n_computed < r.table.size() * config_.block_tokens) return true;
    while (true) {
        if (auto fresh = pool_.allocate(1)) {
            tier_.fence(*fresh);
            r.table.push_back(fresh->front());
            return true;
        }
        const auto victim = std::find_if(running_.rbegin(), running_.rend(), [](const request* v) {
            return v->at != request::phase::loading;
        });
        request* youngest = *victim;  // r itself is running and not loading, so there is one
        preempt(*youngest);
        if (youngest == &r) return false;
    }
}

// Decodes first, so that running answers are never held up by a long prompt; prefill chunks get the rest.
void scheduler::plan(std::vector<request*>* chosen, std::vector<work_item>* items) {
    const std::vector<request*> candidates = running_;  // preempt() changes running_
    for (request* r : candidates) {
        if (r->at == request::phase::decode && room_for_next_token(*r)) chosen->push_back(r);
    }
    std::erase_if(*chosen, [](const request* r) { return r->at != request::phase::decode; });
    uint32_t n_left = config_.max_step_tokens;
    for (const request* r : *chosen) {
        const std::span<const uint32_t> tokens(&r->tokens[r->n_computed], 1);
        items->push_back({tokens, r->n_computed, r->table, true});
        n_left -= std::min(n_left, 1u);
    }
    for (request* r : running_) {
        if (r->at != request::phase::prefill || n_left == 0) continue;
        const auto n_todo = static_cast<uint32_t>(r->tokens.size() - r->n_computed);
        const uint32_t n_now = std::min(n_todo, n_left);
        const std::span<const uint32_t> tokens(&r->tokens[r->n_computed], n_now);
        items->push_back({tokens, r->n_computed, r->table, n_now == n_todo});
        chosen->push_back(r);
        n_left -= n_now;
    }
}

void scheduler::advance(request& r, const work_item& item, uint32_t next) {
    const bool was_prefill = r.at == request::phase::prefill;
    const bool wants_token = item.wants_token;
    r.n_computed += static_cast<uint32_t>(item.tokens.size());
    (was_prefill ? counts_.prefilled_tokens : counts_.decoded_tokens) += item.tokens.size();
    if (was_prefill) r.sequence->prefilled(r.n_computed, r.table);
    if (wants_token) {
        r.tokens.push_back(next);
        if (r.first_token_ns == 0) r.first_token_ns = wall_ns();
        r.sequence->decoded(next, r.n_computed, r.table);
        const bool over = r.n_answered() >= r.spec->max_answer ||
                          (r.spec->stop_at_end && next == config_.end_token);
        r.at = over ? request::phase::done : request::phase::decode;
    }
    publish(r);
}

bool scheduler::step(std::vector<request*>* finished) {
    admit();
    std::vector<request*> chosen;
    std::vector<work_item> items;
    tier_.progress(false);
    finish_loads();
    plan(&chosen, &items);
    if (items.empty()) {
        tier_.progress(true);
        return !running_.empty() || !waiting_.empty();
    }
    std::vector<uint32_t> next(items.size());
    forward_(items, next);
    ++counts_.steps;
    for (size_t i = 0; i < chosen.size(); ++i) advance(*chosen[i], items[i], next[i]);
    for (request* r : chosen) {
        if (r->at != request::phase::done) continue;
        r->finished_ns = wall_ns();
        r->sequence.reset();
        pool_.release(r->table);
        r->table.clear();
        std::erase(running_, r);
        finished->push_back(r);
    }
    return true;
}

}  // namespace engine

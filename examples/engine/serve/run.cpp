#include "serve/run.hpp"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace engine {

namespace {

double process_cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// All requests of the schedule, and how far each user has come.
class users_in_turn {
public:
    explicit users_in_turn(const schedule& plan) {
        size_t number = 0;
        for (const auto& user : plan.users) {
            first_.push_back(requests_.size());
            for (const auto& spec : user) {
                requests_.push_back({});
                requests_.back().spec = &spec;
                requests_.back().number = number++;
            }
        }
        first_.push_back(requests_.size());
        for (size_t u = 0; u + 1 < first_.size(); ++u) next_.push_back(first_[u]);
    }
    size_t n_users() const { return next_.size(); }
    request* next(size_t user) {
        return next_[user] < first_[user + 1] ? &requests_[next_[user]++] : nullptr;
    }
    size_t user_of(size_t number) const {
        const auto it = std::upper_bound(first_.begin(), first_.end(), number);
        return static_cast<size_t>(it - first_.begin()) - 1;
    }
    const std::vector<request>& all() const { return requests_; }

private:
    std::vector<request> requests_;
    std::vector<size_t> first_, next_;
};

bool submit_next(users_in_turn& users, size_t user, scheduler& s, std::string* error) {
    request* r = users.next(user);
    if (r == nullptr || s.submit(r)) return true;
    *error = fmt::format("request {}: {} prompt tokens and {} of answer never fit the device pool",
                         r->number, r->spec->prompt.size(), r->spec->max_answer);
    return false;
}

void collect(const users_in_turn& users, run_result* out) {
    for (const request& r : users.all()) {
        const size_t n_prompt = r.spec->prompt.size();
        out->answers.emplace_back(r.tokens.begin() + static_cast<std::ptrdiff_t>(n_prompt),
                                  r.tokens.end());
        out->ttft_ms.push_back(static_cast<double>(r.first_token_ns - r.arrived_ns) * 1e-6);
        out->prompt_tokens += n_prompt;
    }
}

}  // namespace

uint64_t resident_bytes() {
    std::ifstream in("/proc/self/statm");
    uint64_t total = 0, resident = 0;
    in >> total >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool run_schedule(const std::string& name, const schedule& plan, const scheduler_config& config,
                  block_pool& pool, reuse_tier& tier, const forward_fn& forward, run_result* out,
                  std::string* error) {
    out->name = name;
    users_in_turn users(plan);
    scheduler s(config, pool, tier, forward);
    out->rss_before = out->rss_peak = resident_bytes();
    const reuse_report at_start = tier.report();
    const double cpu_start = process_cpu_s();
    const uint64_t start = wall_ns();
    for (size_t u = 0; u < users.n_users(); ++u) {
        if (!submit_next(users, u, s, error)) return false;
    }
    std::vector<request*> finished;
    while (s.step(&finished)) {
        for (const request* r : finished) {
            if (!submit_next(users, users.user_of(r->number), s, error)) return false;
        }
        finished.clear();
        out->rss_peak = std::max(out->rss_peak, resident_bytes());
    }
    tier.settle();
    out->total_s = static_cast<double>(wall_ns() - start) * 1e-9;
    out->cpu_s = process_cpu_s() - cpu_start;
    out->rss_after = resident_bytes();
    out->counts = s.counts();
    out->tier = tier.report();
    out->tier.subtract_counters(at_start);
    collect(users, out);
    return true;
}

}  // namespace engine

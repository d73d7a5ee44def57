#include "model/thread_team.hpp"

#include <algorithm>

namespace engine {

namespace {

// Rounds follow each other closely, and to wake a thread takes longer than most of them: look for a while
// before sleeping.
template <typename Condition>
void wait_while(Condition holds) {
    constexpr uint32_t kLooks = 4000;
    for (uint32_t i = 0; i < kLooks && holds(); ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

}  // namespace

thread_team::thread_team(uint32_t n_threads) {
    for (uint32_t i = 1; i < n_threads; ++i) members_.emplace_back([this, i] { member_main(i); });
}

thread_team::~thread_team() {
    ending_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (auto& m : members_) m.join();
}

thread_team& thread_team::shared() {
    static thread_team team(std::max(1u, std::thread::hardware_concurrency()));
    return team;
}

void thread_team::take_turns(uint32_t member) {
    for (uint32_t i = next_.fetch_add(1); i < n_; i = next_.fetch_add(1)) call_(work_, i, member);
}

void thread_team::run_any(uint32_t n, void* work, call_fn call) {
    n_ = n;
    work_ = work;
    call_ = call;
    next_ = 0;
    if (n > 1 && !members_.empty()) {
        working_ = static_cast<uint32_t>(members_.size());
        round_.fetch_add(1);
        round_.notify_all();
    }
    take_turns(0);
    wait_while([this] { return working_.load() != 0; });
    for (uint32_t left = working_; left != 0; left = working_) working_.wait(left);
}

void thread_team::member_main(uint32_t member) {
    uint32_t seen = 0;
    while (true) {
        wait_while([this, seen] { return round_.load() == seen; });
        round_.wait(seen);
        seen = round_.load();
        if (ending_) return;
        take_turns(member);
        if (working_.fetch_sub(1) == 1) working_.notify_all();
    }
}

}  // namespace engine

// Deals the numbers 0..n-1 to a fixed team of threads and waits until all are done. Idle members sleep, so
// that a machine with other work is not spun away. One caller at a time; ends with the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace engine {

class thread_team {
public:
    explicit thread_team(uint32_t n_threads);
    ~thread_team();
    thread_team(const thread_team&) = delete;
    thread_team& operator=(const thread_team&) = delete;

    uint32_t size() const { return static_cast<uint32_t>(members_.size()) + 1; }
    // Calls work(i, member) once for each i; member < size() names the thread.
    template <typename Work>
    void run(uint32_t n, Work work) {
        run_any(n, &work, [](void* w, uint32_t i, uint32_t member) { (*static_cast<Work*>(w))(i, member); });
    }

    // One team of as many threads as the machine has CPUs, shared by everything in this process.
    static thread_team& shared();

private:
    using call_fn = void (*)(void*, uint32_t, uint32_t);
    void run_any(uint32_t n, void* work, call_fn call);
    void take_turns(uint32_t member);
    void member_main(uint32_t member);

    std::atomic<uint32_t> round_{0}, next_{0}, working_{0};
    std::atomic<bool> ending_{false};
    uint32_t n_ = 0;
    void* work_ = nullptr;
    call_fn call_ = nullptr;
    std::vector<std::thread> members_;
};

}  // namespace engine

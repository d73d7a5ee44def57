// A thread of the library: a name, all signals blocked, its CPU time readable by others, and a stop
// flag it sleeps on. The owner stops it before anything it uses goes away.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.hpp"

namespace kvo {

class worker_thread {
public:
    worker_thread() = default;
    ~worker_thread() {
        stop([] {});
    }
    worker_thread(const worker_thread&) = delete;
    worker_thread& operator=(const worker_thread&) = delete;

    status start(const char* name, std::function<void()> body);
    bool started() const { return thread_.joinable(); }
    bool stopping() const { return stop_.load(std::memory_order_acquire); }
    // wake: makes the body look at stopping(). Joins.
    void stop(const std::function<void()>& wake);
    // Sleeps until nudge(), stop or the time is over.
    void sleep(uint64_t timeout_ns);
    void nudge();
    uint64_t cpu_ns() const;  // any thread

private:
    std::thread thread_;
    std::atomic<bool> stop_{false};
    std::atomic<uint64_t> final_cpu_ns_{0};
    std::atomic<bool> running_{false};
    clockid_t clock_{};
    std::mutex mutex_;
    std::condition_variable wake_;
    bool nudged_ = false;
};

}  // namespace kvo

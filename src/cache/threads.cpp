#include "cache/threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <system_error>

#include "base/clock.hpp"

namespace kvo {

status worker_thread::start(const char* name, std::function<void()> body) {
    sigset_t all, before;
    sigfillset(&all);
    // The thread inherits the mask: the engine's handlers never run on it.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status s = KVO_OK;
    stop_.store(false, std::memory_order_release);
    try {
        thread_ = std::thread([this, body = std::move(body)] {
            body();
            final_cpu_ns_.store(thread_cpu_ns(), std::memory_order_relaxed);
            running_.store(false, std::memory_order_release);
        });
    } catch (const std::system_error&) {
        s = fail(KVO_E_MEMORY, "cannot start the thread {}", name);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (s != KVO_OK) return s;
    pthread_setname_np(thread_.native_handle(), name);
    if (pthread_getcpuclockid(thread_.native_handle(), &clock_) == 0) {
        running_.store(true, std::memory_order_release);
    }
    return KVO_OK;
}

void worker_thread::stop(const std::function<void()>& wake) {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    nudge();
    wake();
    thread_.join();
}

void worker_thread::sleep(uint64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                   [this] { return nudged_ || stopping(); });
    nudged_ = false;
}

void worker_thread::nudge() {
    {
        const std::lock_guard lock(mutex_);
        nudged_ = true;
    }
    wake_.notify_one();
}

uint64_t worker_thread::cpu_ns() const {
    if (running_.load(std::memory_order_acquire)) return read_clock(clock_);
    return final_cpu_ns_.load(std::memory_order_relaxed);
}

}  // namespace kvo

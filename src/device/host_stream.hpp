// One stream of the host device and its events. Internal to src/device.
//
// An event counts: record gives it a new target number and queues "reached that number"; it is done when the
// number reached equals the last one asked for. So a wait, which remembers the number of its moment, is not
// moved by a later record. Shared ownership keeps both alive while queued work names them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "device/host_streams.hpp"

namespace kvo {

class host_event {
public:
    uint64_t next_target();
    void reach(uint64_t number);
    uint64_t target() const { return target_.load(std::memory_order_acquire); }
    bool reached(uint64_t number) const { return reached_.load(std::memory_order_acquire) >= number; }
    bool done() const { return reached(target()); }
    void wait(uint64_t number);
    // For one waiter that can be called off: false when the time is over or interrupt() came, also before.
    bool wait_unless_interrupted(uint64_t number, uint64_t timeout_ns);
    void interrupt();

private:
    std::atomic<uint64_t> target_{0}, reached_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    uint32_t n_waiting_ = 0;
    bool interrupted_ = false;
};

// A queue in a ring that becomes larger when it is full, so that queueing never waits.
template <typename T>
class growing_ring {
public:
    explicit growing_ring(size_t n) : ring_(n) {}
    bool empty() const { return head_ == tail_; }
    uint64_t n_pushed() const { return tail_; }
    void push(T&& value) {
        if (tail_ - head_ == ring_.size()) grow();
        ring_[tail_++ % ring_.size()] = std::move(value);
    }
    T pop() { return std::move(ring_[head_++ % ring_.size()]); }

private:
    void grow() {
        std::vector<T> larger(ring_.size() * 2);
        for (uint64_t i = head_; i < tail_; ++i) larger[i % larger.size()] = std::move(ring_[i % ring_.size()]);
        ring_ = std::move(larger);
    }
    std::vector<T> ring_;
    uint64_t head_ = 0, tail_ = 0;  // next to pop, next to fill
};

class host_stream {
public:
    host_stream();
    void copy(const copy_piece* pieces, uint32_t n);
    void run(void (*fn)(void*), void* arg);
    void record(std::shared_ptr<host_event> event);
    void wait_for(std::shared_ptr<host_event> event);
    void sync();
    // Lets the thread end once the queue is empty. The object must be held by a shared_ptr.
    void close();
    uint64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

    // Work runs on a thread that keeps the stream alive. false: no thread could be made.
    static bool start(const std::shared_ptr<host_stream>& self);

private:
    enum class kind : uint8_t { copy, run, record, wait };
    struct item {
        kind what = kind::run;
        uint32_t n_pieces = 0;  // the next ones of pieces_
        void (*fn)(void*) = nullptr;
        void* arg = nullptr;
        std::shared_ptr<host_event> event;
        uint64_t number = 0;
    };

    void push(item&& work);
    bool pop(item* work);
    void execute(item& work);
    void main();

    std::mutex mutex_;
    std::condition_variable work_, finished_one_;
    growing_ring<item> items_{kHostStreamDepth};
    growing_ring<copy_piece> pieces_{kHostStreamPieces};
    std::vector<copy_piece> at_work_;  // of the thread: pieces of the item being executed
    uint64_t finished_ = 0;            // items that have run
    uint32_t n_syncing_ = 0;
    bool closing_ = false, started_ = false, sleeping_ = false;
    std::atomic<uint64_t> cpu_ns_{0};
};

}  // namespace kvo

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
    // false: the time is over.
    bool wait(uint64_t number, uint64_t timeout_ns);

private:
    std::atomic<uint64_t> target_{0}, reached_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

class host_stream {
public:
    host_stream() : ring_(kHostStreamDepth) {}

    void copy(const copy_piece* pieces, uint32_t n);
    void run(void (*fn)(void*), void* arg);
    void record(std::shared_ptr<host_event> event);
    void wait_for(std::shared_ptr<host_event> event);
    void sync();
    // Lets the thread end once the queue is empty. The object must be held by a shared_ptr.
    void close();
    uint64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

    // Work runs on a thread that keeps the stream alive.
    static void start(const std::shared_ptr<host_stream>& self);

private:
    enum class kind : uint8_t { copy, run, record, wait };
    struct item {
        kind what = kind::run;
        void (*fn)(void*) = nullptr;
        void* arg = nullptr;
        copy_piece piece{};
        std::shared_ptr<host_event> event;
        uint64_t number = 0;
    };

    void push(item&& work);
    bool pop(item* work);
    void execute(item& work);
    void main();

    std::mutex mutex_;
    std::condition_variable work_, room_;
    std::vector<item> ring_;
    uint64_t head_ = 0, tail_ = 0;    // next to run, next to fill
    uint64_t finished_ = 0;           // items that have run
    bool closing_ = false, started_ = false, sleeping_ = false;
    std::atomic<uint64_t> cpu_ns_{0};
};

}  // namespace kvo

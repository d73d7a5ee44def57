#include "device/host_stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>

#include "base/clock.hpp"
#include "device/host_copy.hpp"

namespace kvo {

uint64_t host_event::next_target() { return target_.fetch_add(1, std::memory_order_acq_rel) + 1; }

void host_event::reach(uint64_t number) {
    {
        const std::lock_guard lock(mutex_);
        if (reached_.load(std::memory_order_relaxed) < number) {
            reached_.store(number, std::memory_order_release);
        }
    }
    changed_.notify_all();
}

bool host_event::wait(uint64_t number, uint64_t timeout_ns) {
    if (reached(number)) return true;
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return reached(number); };
    if (timeout_ns == KVO_FOREVER) {
        changed_.wait(lock, is_there);
        return true;
    }
    return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_there);
}

void host_stream::push(item&& work) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return tail_ - head_ < ring_.size(); });
    ring_[tail_++ % ring_.size()] = std::move(work);
    if (sleeping_) work_.notify_one();
}

bool host_stream::pop(item* work) {
    std::unique_lock lock(mutex_);
    if (head_ == tail_) {
        cpu_ns_.store(thread_cpu_ns(), std::memory_order_relaxed);
        sleeping_ = true;
        work_.wait(lock, [this] { return head_ != tail_ || closing_; });
        sleeping_ = false;
        if (head_ == tail_) return false;
    }
    *work = std::move(ring_[head_ % ring_.size()]);
    ++head_;
    if (tail_ - head_ == ring_.size() - 1) room_.notify_all();
    return true;
}

void host_stream::execute(item& work) {
    switch (work.what) {
        case kind::copy:
            host_copy(work.piece.dst, work.piece.src, work.piece.bytes);
            break;
        case kind::run:
            work.fn(work.arg);
            break;
        case kind::record:
            copy_fence();
            work.event->reach(work.number);
            break;
        case kind::wait:
            work.event->wait(work.number, KVO_FOREVER);
            break;
    }
    work.event.reset();
}

void host_stream::main() {
    item work;
    while (pop(&work)) {
        execute(work);
        const std::lock_guard lock(mutex_);
        if (++finished_ == tail_) room_.notify_all();
    }
}

void host_stream::start(const std::shared_ptr<host_stream>& self) {
    {
        const std::lock_guard lock(self->mutex_);
        if (self->started_) return;
        self->started_ = true;
    }
    // The thread takes none of the process's signals; it ends when closed and empty, or with the process.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([self] { self->main(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void host_stream::copy(const copy_piece* pieces, uint32_t n) {
    std::unique_lock lock(mutex_);
    for (uint32_t i = 0; i < n; ++i) {
        room_.wait(lock, [this] { return tail_ - head_ < ring_.size(); });
        item& at = ring_[tail_++ % ring_.size()];
        at.what = kind::copy;
        at.piece = pieces[i];
        if (sleeping_) work_.notify_one();
    }
}

void host_stream::run(void (*fn)(void*), void* arg) {
    item work;
    work.fn = fn;
    work.arg = arg;
    push(std::move(work));
}

void host_stream::record(std::shared_ptr<host_event> event) {
    item work;
    work.what = kind::record;
    work.event = std::move(event);
    work.number = work.event->next_target();
    push(std::move(work));
}

void host_stream::wait_for(std::shared_ptr<host_event> event) {
    item work;
    work.what = kind::wait;
    work.event = std::move(event);
    work.number = work.event->target();
    push(std::move(work));
}

void host_stream::sync() {
    std::unique_lock lock(mutex_);
    const uint64_t until = tail_;
    room_.wait(lock, [&] { return finished_ >= until; });
}

void host_stream::close() {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    work_.notify_one();
}

}  // namespace kvo

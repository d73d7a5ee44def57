#include "device/host_stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <system_error>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "device/host_copy.hpp"

namespace kvo {

uint64_t host_event::next_target() { return target_.fetch_add(1, std::memory_order_acq_rel) + 1; }

void host_event::reach(uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (reached_.load(std::memory_order_relaxed) < number) {
        reached_.store(number, std::memory_order_release);
    }
    if (n_waiting_ > 0) changed_.notify_all();
}

void host_event::wait(uint64_t number) {
    if (reached(number)) return;
    std::unique_lock lock(mutex_);
    ++n_waiting_;
    changed_.wait(lock, [&] { return reached(number); });
    --n_waiting_;
}

bool host_event::wait_unless_interrupted(uint64_t number, uint64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    ++n_waiting_;
    changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                      [&] { return reached(number) || interrupted_; });
    --n_waiting_;
    interrupted_ = false;
    return reached(number);
}

void host_event::interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    if (n_waiting_ > 0) changed_.notify_all();
}

host_stream::host_stream() { at_work_.reserve(kPiecesPerCall); }

void host_stream::push(item&& work) {
    const std::lock_guard lock(mutex_);
    items_.push(std::move(work));
    if (sleeping_) work_.notify_one();
}

bool host_stream::pop(item* work) {
    std::unique_lock lock(mutex_);
    if (items_.empty()) {
        cpu_ns_.store(thread_cpu_ns(), std::memory_order_relaxed);
        sleeping_ = true;
        work_.wait(lock, [this] { return !items_.empty() || closing_; });
        sleeping_ = false;
        if (items_.empty()) return false;
    }
    *work = items_.pop();
    at_work_.clear();
    for (uint32_t i = 0; i < work->n_pieces; ++i) at_work_.push_back(pieces_.pop());
    return true;
}

void host_stream::execute(item& work) {
    switch (work.what) {
        case kind::copy:
            for (const copy_piece& piece : at_work_) host_copy(piece.dst, piece.src, piece.bytes);
            break;
        case kind::run:
            work.fn(work.arg);
            break;
        case kind::record:
            copy_fence();
            work.event->reach(work.number);
            break;
        case kind::wait:
            work.event->wait(work.number);
            break;
    }
    work.event.reset();
}

void host_stream::main() {
    item work;
    while (pop(&work)) {
        execute(work);
        const std::lock_guard lock(mutex_);
        ++finished_;
        if (n_syncing_ > 0) finished_one_.notify_all();
    }
}

bool host_stream::start(const std::shared_ptr<host_stream>& self) {
    const std::lock_guard lock(self->mutex_);
    if (self->started_) return true;
    // The thread takes none of the process's signals; it ends when closed and empty, or with the process.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread([self] { self->main(); }).detach();
        self->started_ = true;
    } catch (const std::system_error&) {
        // The next call tries again.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return self->started_;
}

void host_stream::copy(const copy_piece* pieces, uint32_t n) {
    item work;
    work.what = kind::copy;
    work.n_pieces = n;
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < n; ++i) pieces_.push(copy_piece(pieces[i]));
    items_.push(std::move(work));
    if (sleeping_) work_.notify_one();
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
    const uint64_t until = items_.n_pushed();
    ++n_syncing_;
    finished_one_.wait(lock, [&] { return finished_ >= until; });
    --n_syncing_;
}

void host_stream::close() {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    work_.notify_one();
}

}  // namespace kvo

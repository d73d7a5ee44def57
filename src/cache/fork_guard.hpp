// Tells a forked child from the process that made the cache, without a syscall: one page that the
// kernel wipes in the child. Where the kernel cannot do that, the process id is asked. Any thread.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace kvo {

class fork_guard {
public:
    fork_guard() : owner_(getpid()) {
        void* page =
            mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return;
        if (madvise(page, kPage, MADV_WIPEONFORK) != 0) {
            munmap(page, kPage);
            return;
        }
        mark_ = new (page) std::atomic<int>(1);
    }
    ~fork_guard() {
        if (mark_ != nullptr) munmap(mark_, kPage);
    }
    fork_guard(const fork_guard&) = delete;
    fork_guard& operator=(const fork_guard&) = delete;

    bool forked() const noexcept {
        if (mark_ != nullptr) return mark_->load(std::memory_order_relaxed) == 0;
        return getpid() != owner_;
    }

private:
    static constexpr size_t kPage = 4096;
    std::atomic<int>* mark_ = nullptr;
    pid_t owner_;
};

}  // namespace kvo

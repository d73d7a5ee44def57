#include "memory/host_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/math.hpp"
#include "memory/headroom.hpp"
#include "memory/page_touch.hpp"

namespace kvo {

struct host_pool::state {
    host_pool_config config;
    uint8_t* base = nullptr;
    uint64_t page = 4096;
    std::vector<uint64_t> touched;  // leading bytes of each chunk, whole pages
    std::atomic<uint64_t> touched_total{0};

    uint8_t* chunk(uint64_t index) const { return base + index * config.chunk_bytes; }
};

host_pool::host_pool(std::unique_ptr<state> s) : state_(std::move(s)) {}

host_pool::~host_pool() {
    if (state_->base != nullptr) munmap(state_->base, state_->config.reserve_bytes);
}

status host_pool::create(const host_pool_config& config, std::unique_ptr<host_pool>* out) {
    auto s = std::make_unique<state>();
    s->config = config;
    s->page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (config.chunk_bytes == 0 || config.chunk_bytes % s->page != 0 ||
        config.reserve_bytes % config.chunk_bytes != 0 || config.reserve_bytes == 0) {
        return fail(KVO_E_INTERNAL, "pool of {} bytes in chunks of {}: not whole chunks of whole pages",
                    config.reserve_bytes, config.chunk_bytes);
    }
    void* at = mmap(nullptr, config.reserve_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return fail(KVO_E_MEMORY, "cannot reserve {} bytes of address space for the pool: {}",
                    config.reserve_bytes, std::strerror(errno));
    }
    s->base = static_cast<uint8_t*>(at);
    // A forked child must never copy or hold the pool; copies of the parent may be writing to it.
    (void)madvise(at, config.reserve_bytes, MADV_DONTFORK);
    // Without transparent huge pages this fails and ordinary pages serve.
    if (config.huge_pages) (void)madvise(at, config.reserve_bytes, MADV_HUGEPAGE);
    prefer_node(s->base, config.reserve_bytes, config.numa_node);
    s->touched.resize(config.reserve_bytes / config.chunk_bytes, 0);
    out->reset(new host_pool(std::move(s)));
    return KVO_OK;
}

status host_pool::populate(uint64_t index, uint64_t end_bytes) {
    const uint64_t end = align_up(end_bytes, state_->page);
    const uint64_t begin = state_->touched[index];
    if (end <= begin) return KVO_OK;
    const headroom room = read_headroom();
    const uint64_t share = room.available_bytes / std::max(1u, state_->config.host_share);
    if (end - begin > share) {
        return fail(KVO_E_BUDGET,
                    "the pool needs {} more bytes, {} are left for this process ({}, shared by {}): "
                    "growth stops here",
                    end - begin, share, room.limited_by, state_->config.host_share);
    }
    uint8_t* at = state_->chunk(index) + begin;
    if (mprotect(at, end - begin, PROT_READ | PROT_WRITE) != 0) {
        return fail(KVO_E_MEMORY, "cannot make {} bytes of the pool writable: {}", end - begin,
                    std::strerror(errno));
    }
    touch_pages(at, end - begin, state_->config.prefault_threads);
    state_->touched[index] = end;
    state_->touched_total.fetch_add(end - begin, std::memory_order_relaxed);
    return KVO_OK;
}

status host_pool::release(uint64_t index, uint64_t keep_bytes) {
    const uint64_t keep = align_up(keep_bytes, state_->page);
    const uint64_t end = state_->touched[index];
    if (keep >= end) return KVO_OK;
    uint8_t* at = state_->chunk(index) + keep;
    if (madvise(at, end - keep, MADV_DONTNEED) != 0 || mprotect(at, end - keep, PROT_NONE) != 0) {
        return fail(KVO_E_MEMORY, "cannot give {} bytes of the pool back: {}", end - keep,
                    std::strerror(errno));
    }
    state_->touched[index] = keep;
    state_->touched_total.fetch_sub(end - keep, std::memory_order_relaxed);
    return KVO_OK;
}

uint8_t* host_pool::base() const noexcept { return state_->base; }
uint64_t host_pool::chunk_bytes() const noexcept { return state_->config.chunk_bytes; }
uint64_t host_pool::n_chunks() const noexcept { return state_->touched.size(); }
uint64_t host_pool::touched_bytes() const noexcept {
    return state_->touched_total.load(std::memory_order_relaxed);
}

}  // namespace kvo

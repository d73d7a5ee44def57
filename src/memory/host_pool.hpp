// The host memory behind the slots: address space reserved once for the largest size the cache may ever
// have, touched and given back chunk by chunk. The pool knows bytes, not blocks: slots_layout says where a
// slot lies. Not thread-safe: calls come from the cache (under its lock) or from its set-up thread as said.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.hpp"

namespace kvo {

struct host_pool_config {
    uint64_t reserve_bytes = 0;   // address space; a multiple of chunk_bytes
    uint64_t chunk_bytes = 0;     // unit of touching and giving back; power of two >= 2 MiB or one page multiple
    bool huge_pages = true;
    int32_t numa_node = -1;
    uint32_t prefault_threads = 1;
    uint32_t host_share = 1;
};

class host_pool {
public:
    // Reserves address space only (PROT_NONE, MADV_DONTFORK). KVO_E_MEMORY with the numbers.
    static status create(const host_pool_config& config, std::unique_ptr<host_pool>* out);
    ~host_pool();
    host_pool(const host_pool&) = delete;
    host_pool& operator=(const host_pool&) = delete;

    // Makes bytes [0, end_bytes) of chunk `index` readable and writable and touches (in parallel) every page
    // of them that is not touched yet; what is touched keeps its contents, and others may use it meanwhile.
    // Checks headroom of machine and cgroup first: KVO_E_BUDGET when short, nothing touched then. Chunks may
    // be partly touched so that a budget buys exactly its number of blocks. Set-up thread.
    status populate(uint64_t index, uint64_t end_bytes);
    // Gives back the chunk's pages that lie wholly at or after keep_bytes (0: all of them). Set-up thread;
    // nothing may use that part.
    status release(uint64_t index, uint64_t keep_bytes);

    uint8_t* base() const noexcept;
    uint64_t chunk_bytes() const noexcept;
    uint64_t n_chunks() const noexcept;
    uint64_t touched_bytes() const noexcept;  // any thread

private:
    struct state;
    explicit host_pool(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

}  // namespace kvo

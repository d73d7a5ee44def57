// The reuse tier that is kvoffload, called only through its public C++ headers. The engine computes on the
// calling thread, so every call passes KVO_STREAM_IDLE: nothing is ever queued behind the engine's back.
// One thread.
#pragma once

#include <memory>
#include <string>

#include "model/kv_pool.hpp"
#include "serve/reuse.hpp"

namespace engine {

struct offload_config {
    uint64_t budget_bytes = 0;
    bool arc = false;
    std::string fingerprint;  // what else a block's bytes depend on: the model
};

class offload_tier : public reuse_tier {
public:
    // As after a restart: everything that was kept is forgotten.
    virtual void reset() = 0;
};

// null with *error.
std::unique_ptr<offload_tier> make_offload_tier(kv_pool& pool, const offload_config& config, std::string* error);

}  // namespace engine

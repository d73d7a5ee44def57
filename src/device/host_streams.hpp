// Streams and events on CPU threads: what the host device is made of, also open to CPU engines through the
// C interface. A stream is a FIFO with a thread of its own, started at the first work and kept to the end
// of the process; it sleeps when it has nothing to do. Any thread may call anything. After a fork the
// child must not call.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "device/device.hpp"

namespace kvo {

// Work items and copies that a stream can hold without an allocation. More make its rings larger.
constexpr uint32_t kHostStreamDepth = 1024;
constexpr uint32_t kHostStreamPieces = 8192;

status host_stream_create(void** stream);
// Returns at once; what is queued still runs.
status host_stream_destroy(void* stream);
status host_stream_run(void* stream, void (*fn)(void*), void* arg);
status host_stream_sync(void* stream);
// CPU time of all stream threads so far.
uint64_t host_streams_cpu_ns();

}  // namespace kvo

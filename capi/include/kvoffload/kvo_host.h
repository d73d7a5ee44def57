/* kvoffload C ABI, part 6: streams of the host device (KVO_DEVICE_HOST), for engines that compute on the
 * CPU asynchronously and for tests. A CPU engine that computes on the calling thread does not need them:
 * it passes KVO_STREAM_IDLE. Streams belong to the process, not to a cache; any thread may use them. */
#ifndef KVOFFLOAD_KVO_HOST_H
#define KVOFFLOAD_KVO_HOST_H

#include "kvo_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A FIFO of work with one thread of its own (started at the first work). destroy returns at once; queued
 * work still runs. */
KVO_API kvo_status_t kvo_host_stream_create(void** stream) KVO_NOEXCEPT;
KVO_API kvo_status_t kvo_host_stream_destroy(void* stream) KVO_NOEXCEPT;
/* Queues fn(arg) behind everything queued before. fn must not throw. */
KVO_API kvo_status_t kvo_host_stream_run(void* stream, void (*fn)(void*), void* arg) KVO_NOEXCEPT;
/* Waits on the host until everything queued before this call has run. */
KVO_API kvo_status_t kvo_host_stream_sync(void* stream) KVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

// The device table: everything the library asks of a device, as plain functions over one context, so that
// CUDA, CPU memory, an engine's own runtime or a test can stand behind it.
//
// Contract: streams are FIFO; nothing is ordered between streams but by events. Calls never wait for
// queued work. copy_batch queues; the copies happen later, in any order inside one call. Any thread may
// call any entry, also on the same stream or event at once. Entries marked optional may be null.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace kvo {

enum class copy_direction : uint32_t { load, store };  // host to device, device to host

struct copy_piece {
    void* dst;
    const void* src;
    uint64_t bytes;
};

struct device_table {
    void* context = nullptr;
    const char* name = "";

    // Streams of the library's own. destroy returns at once; queued work still runs.
    status (*stream_create)(void* ctx, void** stream) = nullptr;
    void (*stream_destroy)(void* ctx, void* stream) = nullptr;
    // KVO_E_CAPTURING while the stream is being captured, KVO_E_ARGUMENT for no stream of this device.
    status (*stream_check)(void* ctx, void* stream) = nullptr;

    // Events. Never recorded = done. record snapshots the stream's queue at the call; wait makes the
    // stream wait for the most recent record at the time of the call. query: KVO_OK, KVO_E_NOT_READY, or
    // the error of the work before it (KVO_E_TRANSFER: some copy failed; KVO_E_DEVICE_LOST).
    status (*event_create)(void* ctx, void** event) = nullptr;
    void (*event_destroy)(void* ctx, void* event) = nullptr;
    status (*event_record)(void* ctx, void* event, void* stream) = nullptr;
    status (*event_query)(void* ctx, void* event) = nullptr;
    status (*stream_wait)(void* ctx, void* stream, void* event) = nullptr;

    // Queues up to kPiecesPerCall copies on the stream. On an error *n_queued pieces, the first ones, are
    // queued all the same. The array is only read during the call. D2H reads in stream order.
    status (*copy_batch)(void* ctx, void* stream, copy_direction direction, const copy_piece* pieces,
                         uint32_t n, uint32_t* n_queued) = nullptr;

    // Error number of the device behind the last failing call of this thread, 0 if none.
    int (*driver_code)(void* ctx) = nullptr;

    // Optional, both or none: waits on the host until the event is done, the time is over or interrupt is
    // called for this event (also just before), so that a progress thread need not spin where waiting is
    // cheap (host device). One waiter an event. Null on devices that must be polled.
    status (*event_wait)(void* ctx, void* event, uint64_t timeout_ns) = nullptr;
    void (*event_interrupt)(void* ctx, void* event) = nullptr;
    // Optional: CPU nanoseconds of the device's own threads (host device).
    uint64_t (*cpu_ns)(void* ctx) = nullptr;
    // Optional: called once when the cache lets the table go.
    void (*release)(void* ctx) = nullptr;
};

// The host device: CPU memory, real threads as streams. One per process, never destroyed.
const device_table& host_device() noexcept;
// No device at all, for opaque groups: every stream call is KVO_E_UNSUPPORTED.
const device_table& no_device() noexcept;

}  // namespace kvo

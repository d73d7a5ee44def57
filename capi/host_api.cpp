// kvo_host.h: flat wrappers, no logic.
#include "device/host_streams.hpp"
#include "guard.hpp"
#include "kvoffload/kvo_host.h"

using namespace kvo::capi;

kvo_status_t kvo_host_stream_create(void** stream) noexcept {
    return guarded([&]() -> kvo_status_t {
        KVO_TRY(check_not_null("stream", stream));
        *stream = nullptr;
        return kvo::host_stream_create(stream);
    });
}

kvo_status_t kvo_host_stream_destroy(void* stream) noexcept {
    return guarded([&] { return kvo::host_stream_destroy(stream); });
}

kvo_status_t kvo_host_stream_run(void* stream, void (*fn)(void*), void* arg) noexcept {
    return guarded([&]() -> kvo_status_t {
        if (fn == nullptr) return kvo::fail(KVO_E_ARGUMENT, "fn is NULL");
        return kvo::host_stream_run(stream, fn, arg);
    });
}

kvo_status_t kvo_host_stream_sync(void* stream) noexcept {
    return guarded([&] { return kvo::host_stream_sync(stream); });
}

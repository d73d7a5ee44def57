#include "device/device.hpp"

namespace kvo {

namespace {

status refuse() {
    return fail(KVO_E_UNSUPPORTED,
                "this cache has no device (KVO_DEVICE_NONE): only opaque groups, raw slots and views");
}

}  // namespace

// Events are never recorded here, so they are always done; streams are refused by name.
const device_table& no_device() noexcept {
    static const device_table table = [] {
        device_table t;
        t.name = "none";
        t.stream_create = [](void*, void** stream) {
            *stream = nullptr;
            return KVO_OK;
        };
        t.stream_destroy = [](void*, void*) {};
        t.stream_check = [](void*, void*) { return refuse(); };
        t.event_create = [](void*, void** event) {
            *event = nullptr;
            return KVO_OK;
        };
        t.event_destroy = [](void*, void*) {};
        t.event_record = [](void*, void*, void*) { return refuse(); };
        t.event_query = [](void*, void*) { return KVO_OK; };
        t.stream_wait = [](void*, void*, void*) { return refuse(); };
        t.copy_batch = [](void*, void*, copy_direction, const copy_piece*, uint32_t, uint32_t* n_queued) {
            *n_queued = 0;
            return refuse();
        };
        t.driver_code = [](void*) { return 0; };
        return t;
    }();
    return table;
}

}  // namespace kvo

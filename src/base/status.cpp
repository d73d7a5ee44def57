#include "base/status.hpp"

namespace kvo {

char* error_text() noexcept {
    thread_local char text[kErrorTextBytes] = "";
    return text;
}

const char* status_name(status code) noexcept {
    switch (code) {
#define KVO_NAME(x) \
    case x:         \
        return #x
        KVO_NAME(KVO_OK);
        KVO_NAME(KVO_E_ARGUMENT);
        KVO_NAME(KVO_E_STRUCT);
        KVO_NAME(KVO_E_HANDLE);
        KVO_NAME(KVO_E_RANGE);
        KVO_NAME(KVO_E_LAYOUT);
        KVO_NAME(KVO_E_UNSUPPORTED);
        KVO_NAME(KVO_E_STATE);
        KVO_NAME(KVO_E_BUSY);
        KVO_NAME(KVO_E_FORKED);
        KVO_NAME(KVO_E_CAPTURING);
        KVO_NAME(KVO_E_NOT_READY);
        KVO_NAME(KVO_E_NOT_QUEUED);
        KVO_NAME(KVO_E_TIMEOUT);
        KVO_NAME(KVO_E_FULL);
        KVO_NAME(KVO_E_OPS_FULL);
        KVO_NAME(KVO_E_BUDGET);
        KVO_NAME(KVO_E_MEMORY);
        KVO_NAME(KVO_E_PINNED_FULL);
        KVO_NAME(KVO_E_TRANSFER);
        KVO_NAME(KVO_E_CANCELLED);
        KVO_NAME(KVO_E_DEADLINE);
        KVO_NAME(KVO_E_DEPENDENCY);
        KVO_NAME(KVO_E_DROPPED);
        KVO_NAME(KVO_E_DEVICE);
        KVO_NAME(KVO_E_DEVICE_LOST);
        KVO_NAME(KVO_E_INTERNAL);
#undef KVO_NAME
        case KVO_STATUS_FORCE_INT32:
            break;
    }
    return "unknown status";
}

}  // namespace kvo

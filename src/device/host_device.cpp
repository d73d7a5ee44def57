#include <map>
#include <memory>
#include <mutex>

#include "device/device.hpp"
#include "device/host_stream.hpp"

namespace kvo {

namespace {

// All streams of the process by handle. Handles are numbers, never used twice, so that a stale or foreign
// one is an error and not a crash. Never destroyed: threads may outlive static destructors.
class stream_registry {
public:
    status add(bool is_library, void** out) {
        auto stream = std::make_shared<host_stream>();
        const std::lock_guard lock(mutex_);
        *out = reinterpret_cast<void*>(next_);
        streams_[next_] = {std::move(stream), is_library};
        next_ += kStep;
        return KVO_OK;
    }
    bool remove(void* handle) {
        const std::lock_guard lock(mutex_);
        const auto it = streams_.find(reinterpret_cast<uintptr_t>(handle));
        if (it == streams_.end()) return false;
        if (it->second.is_library) ended_cpu_ns_ += it->second.stream->cpu_ns();
        it->second.stream->close();
        streams_.erase(it);
        return true;
    }
    // NULL, 1 and 2 are one default stream here.
    std::shared_ptr<host_stream> find(void* handle) {
        const auto number = reinterpret_cast<uintptr_t>(handle);
        const std::lock_guard lock(mutex_);
        if (number <= 2) {
            if (!default_) default_ = std::make_shared<host_stream>();
            return default_;
        }
        const auto it = streams_.find(number);
        return it == streams_.end() ? nullptr : it->second.stream;
    }
    uint64_t cpu_ns() {
        const std::lock_guard lock(mutex_);
        uint64_t sum = ended_cpu_ns_;
        for (const auto& [number, known] : streams_) {
            if (known.is_library) sum += known.stream->cpu_ns();
        }
        return sum;
    }

private:
    static constexpr uintptr_t kStep = 16;
    struct known_stream {
        std::shared_ptr<host_stream> stream;
        bool is_library = false;  // the library's own, not an engine's
    };
    std::mutex mutex_;
    std::map<uintptr_t, known_stream> streams_;
    std::shared_ptr<host_stream> default_;
    uintptr_t next_ = 0x1000;
    uint64_t ended_cpu_ns_ = 0;
};

stream_registry& registry() {
    static auto* one = new stream_registry;
    return *one;
}

// The stream with its thread running, or an error with the handle.
status find_running(void* handle, std::shared_ptr<host_stream>* out) {
    *out = registry().find(handle);
    if (!*out) return fail(KVO_E_ARGUMENT, "{} is no stream of the host device", handle);
    if (host_stream::start(*out)) return KVO_OK;
    return fail(KVO_E_MEMORY, "no thread for a stream of the host device could be started");
}

using event_handle = std::shared_ptr<host_event>;
event_handle& event_of(void* event) { return *static_cast<event_handle*>(event); }

// The thread is there before the first copy, so that submitting never makes one.
status create_stream(void*, void** stream) {
    const status added = registry().add(true, stream);
    std::shared_ptr<host_stream> s;
    return added == KVO_OK ? find_running(*stream, &s) : added;
}
void destroy_stream(void*, void* stream) { registry().remove(stream); }
status check_stream(void*, void* stream) {
    if (registry().find(stream)) return KVO_OK;
    return fail(KVO_E_ARGUMENT, "{} is no stream of the host device", stream);
}
status create_event(void*, void** event) {
    *event = new event_handle(std::make_shared<host_event>());
    return KVO_OK;
}
void destroy_event(void*, void* event) { delete static_cast<event_handle*>(event); }
status record_event(void*, void* event, void* stream) {
    std::shared_ptr<host_stream> s;
    if (const status found = find_running(stream, &s); found != KVO_OK) return found;
    s->record(event_of(event));
    return KVO_OK;
}
status query_event(void*, void* event) {
    return event_of(event)->done() ? KVO_OK : KVO_E_NOT_READY;
}
status wait_on_stream(void*, void* stream, void* event) {
    if (event_of(event)->done()) return KVO_OK;
    std::shared_ptr<host_stream> s;
    if (const status found = find_running(stream, &s); found != KVO_OK) return found;
    s->wait_for(event_of(event));
    return KVO_OK;
}
status queue_copies(void*, void* stream, copy_direction, const copy_piece* pieces, uint32_t n,
                    uint32_t* n_queued) {
    *n_queued = 0;
    std::shared_ptr<host_stream> s;
    if (const status found = find_running(stream, &s); found != KVO_OK) return found;
    s->copy(pieces, n);
    *n_queued = n;
    return KVO_OK;
}
int no_code(void*) { return 0; }
status wait_on_host(void*, void* event, uint64_t timeout_ns) {
    host_event& e = *event_of(event);
    return e.wait_unless_interrupted(e.target(), timeout_ns) ? KVO_OK : KVO_E_NOT_READY;
}
void interrupt_wait(void*, void* event) { event_of(event)->interrupt(); }
uint64_t library_cpu_ns(void*) { return registry().cpu_ns(); }

}  // namespace

const device_table& host_device() noexcept {
    static const device_table table = [] {
        device_table t;
        t.name = "host";
        t.stream_create = create_stream;
        t.stream_destroy = destroy_stream;
        t.stream_check = check_stream;
        t.event_create = create_event;
        t.event_destroy = destroy_event;
        t.event_record = record_event;
        t.event_query = query_event;
        t.stream_wait = wait_on_stream;
        t.copy_batch = queue_copies;
        t.driver_code = no_code;
        t.event_wait = wait_on_host;
        t.event_interrupt = interrupt_wait;
        t.cpu_ns = library_cpu_ns;
        return t;
    }();
    return table;
}

status host_stream_create(void** stream) { return registry().add(false, stream); }

status host_stream_destroy(void* stream) {
    if (registry().remove(stream)) return KVO_OK;
    return fail(KVO_E_HANDLE, "{} is no stream of the host device", stream);
}

status host_stream_run(void* stream, void (*fn)(void*), void* arg) {
    std::shared_ptr<host_stream> s;
    if (const status found = find_running(stream, &s); found != KVO_OK) return found;
    s->run(fn, arg);
    return KVO_OK;
}

status host_stream_sync(void* stream) {
    std::shared_ptr<host_stream> s;
    if (const status found = find_running(stream, &s); found != KVO_OK) return found;
    s->sync();
    return KVO_OK;
}

uint64_t host_streams_cpu_ns() { return registry().cpu_ns(); }

}  // namespace kvo

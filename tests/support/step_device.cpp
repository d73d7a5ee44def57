#include "support/step_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kvo::test {

namespace {

constexpr int kPoison = 0xDB;

// True when the counter runs out at this call.
bool due(uint64_t* countdown) {
    if (*countdown == step_device::kNever) return false;
    if (*countdown > 0) {
        --*countdown;
        return false;
    }
    *countdown = step_device::kNever;
    return true;
}

[[noreturn]] void misuse(const char* call, const char* what) {
    std::fprintf(stderr, "step device: %s with an unknown %s\n", call, what);
    std::abort();
}

void* as_handle(uint64_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number)); }

}  // namespace

step_device::stream_state& step_device::stream_of(void* stream, const char* call) {
    ++counts.by_stream[stream];
    const auto number = reinterpret_cast<uintptr_t>(stream);
    if (number <= 2) return streams_[0];  // the default streams are one
    const auto it = streams_.find(number);
    if (it == streams_.end()) misuse(call, "stream");
    return it->second;
}

step_device::event_state& step_device::event_of(void* event, const char* call) {
    const auto it = events_.find(reinterpret_cast<uintptr_t>(event));
    if (it == events_.end()) misuse(call, "event");
    return it->second;
}

void* step_device::make_stream() {
    const std::lock_guard lock(mutex_);
    streams_[next_stream_];
    return as_handle(next_stream_++);
}

void step_device::launch(void* stream, void (*fn)(void*), void* arg) {
    const std::lock_guard lock(mutex_);
    item work;
    work.fn = fn;
    work.arg = arg;
    streams_.at(reinterpret_cast<uintptr_t>(stream)).queue.push_back(work);
}

bool step_device::can_run(const stream_state& s) {
    if (s.queue.empty()) return false;
    const item& head = s.queue.front();
    if (head.what != kind::wait) return true;
    const auto it = events_.find(head.event);
    return it == events_.end() || it->second.reached >= head.number;
}

void step_device::run_one(stream_state& s) {
    const item work = s.queue.front();
    s.queue.pop_front();
    if (work.what == kind::poison) std::memset(work.piece.dst, kPoison, work.piece.bytes);
    if (work.what == kind::run) work.fn(work.arg);
    if (work.what == kind::copy) {
        if (due(&fail_execution)) {
            s.failed = KVO_E_TRANSFER;
        } else if (!lost) {
            std::memcpy(work.piece.dst, work.piece.src, work.piece.bytes);
        }
    }
    if (work.what == kind::record) {
        const auto it = events_.find(work.event);
        // A record that was replaced by a later one no longer counts when its turn comes.
        if (it != events_.end() && work.number > it->second.reached) {
            it->second.reached = work.number;
            it->second.result = s.failed;
        }
        s.failed = KVO_OK;
    }
}

bool step_device::run() {
    const std::lock_guard lock(mutex_);
    bool any = false;
    while (true) {
        std::vector<stream_state*> ready;
        for (auto& [number, s] : streams_) {
            if (can_run(s)) ready.push_back(&s);
        }
        if (ready.empty()) return any;
        run_one(*ready[random_() % ready.size()]);
        any = true;
    }
}

uint32_t step_device::run_stream(void* stream, uint32_t n) {
    const std::lock_guard lock(mutex_);
    auto& s = streams_.at(reinterpret_cast<uintptr_t>(stream));
    uint32_t done = 0;
    while (done < n && can_run(s)) {
        run_one(s);
        ++done;
    }
    return done;
}

bool step_device::idle() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, s] : streams_) {
        if (!s.queue.empty()) return false;
    }
    return true;
}

status step_device::submit(void* stream, copy_direction direction, const copy_piece* pieces,
                           uint32_t n, uint32_t* n_queued) {
    now_ns += 500;
    ++counts.batches;
    counts.largest_batch = std::max<uint64_t>(counts.largest_batch, n);
    auto& s = stream_of(stream, "copy_batch");
    *n_queued = 0;
    if (lost) return fail(KVO_E_DEVICE_LOST, "step device: lost");
    const bool fails = due(&fail_batch);
    const uint32_t n_taken = fails ? std::min(n, fail_batch_after) : n;
    // A slot of the host is ours from the submit on. A device block may still be read by what the
    // stream waits for first, so it is spoilt in the stream's order, before the first copy.
    for (uint32_t i = 0; i < n_taken; ++i) {
        if (direction == copy_direction::store) {
            std::memset(pieces[i].dst, kPoison, pieces[i].bytes);
            continue;
        }
        item spoil;
        spoil.what = kind::poison;
        spoil.piece = pieces[i];
        s.queue.push_back(spoil);
    }
    const size_t begin = s.queue.size();
    for (uint32_t i = 0; i < n_taken; ++i) {
        item work;
        work.what = kind::copy;
        work.piece = pieces[i];
        // Pieces of one call may run in any order.
        const size_t at = begin + random_() % (s.queue.size() - begin + 1);
        s.queue.insert(s.queue.begin() + static_cast<std::ptrdiff_t>(at), work);
        ++counts.pieces;
    }
    *n_queued = n_taken;
    return fails ? fail(KVO_E_TRANSFER, "step device: injected failure after {} pieces", n_taken) : KVO_OK;
}

device_table step_device::table() {
    device_table t;
    t.context = this;
    t.name = "step";
    t.stream_create = [](void* ctx, void** stream) {
        *stream = of(ctx).make_stream();
        return KVO_OK;
    };
    t.stream_destroy = [](void*, void*) {};  // what is queued still runs
    t.stream_check = [](void* ctx, void* stream) {
        const std::lock_guard lock(of(ctx).mutex_);
        if (stream == of(ctx).capturing) return fail(KVO_E_CAPTURING, "the stream is being captured");
        const auto number = reinterpret_cast<uintptr_t>(stream);
        if (number > 2 && of(ctx).streams_.count(number) == 0) {
            return fail(KVO_E_ARGUMENT, "{} is no stream", stream);
        }
        return KVO_OK;
    };
    t.event_create = [](void* ctx, void** event) {
        const std::lock_guard lock(of(ctx).mutex_);
        of(ctx).events_[of(ctx).next_event_];
        *event = as_handle(of(ctx).next_event_++);
        return KVO_OK;
    };
    t.event_destroy = [](void* ctx, void* event) {
        const std::lock_guard lock(of(ctx).mutex_);
        of(ctx).events_.erase(reinterpret_cast<uintptr_t>(event));
    };
    t.event_record = [](void* ctx, void* event, void* stream) {
        const std::lock_guard lock(of(ctx).mutex_);
        ++of(ctx).counts.records;
        if (of(ctx).lost) return fail(KVO_E_DEVICE_LOST, "step device: lost");
        if (due(&of(ctx).fail_record)) return fail(KVO_E_TRANSFER, "step device: record failed");
        auto& e = of(ctx).event_of(event, "event_record");
        item work;
        work.what = kind::record;
        work.event = reinterpret_cast<uintptr_t>(event);
        work.number = ++e.target;
        of(ctx).stream_of(stream, "event_record").queue.push_back(work);
        return KVO_OK;
    };
    t.event_query = [](void* ctx, void* event) {
        const std::lock_guard lock(of(ctx).mutex_);
        of(ctx).now_ns += 100;
        ++of(ctx).counts.queries;
        if (of(ctx).lost) return fail(KVO_E_DEVICE_LOST, "step device: lost");
        const auto& e = of(ctx).event_of(event, "event_query");
        return e.reached < e.target ? KVO_E_NOT_READY : e.result;
    };
    t.stream_wait = [](void* ctx, void* stream, void* event) {
        const std::lock_guard lock(of(ctx).mutex_);
        ++of(ctx).counts.waits;
        if (of(ctx).lost) return fail(KVO_E_DEVICE_LOST, "step device: lost");
        if (due(&of(ctx).fail_wait)) return fail(KVO_E_TRANSFER, "step device: wait refused");
        item work;
        work.what = kind::wait;
        work.event = reinterpret_cast<uintptr_t>(event);
        work.number = of(ctx).event_of(event, "stream_wait").target;
        of(ctx).stream_of(stream, "stream_wait").queue.push_back(work);
        return KVO_OK;
    };
    t.copy_batch = [](void* ctx, void* stream, copy_direction direction, const copy_piece* pieces,
                      uint32_t n, uint32_t* n_queued) {
        const std::lock_guard lock(of(ctx).mutex_);
        return of(ctx).submit(stream, direction, pieces, n, n_queued);
    };
    t.driver_code = [](void* ctx) { return of(ctx).lost ? 700 : 0; };
    return t;
}

time_source step_device::clock() {
    time_source source;
    source.context = this;
    source.now = [](void* ctx) {
        const std::lock_guard lock(of(ctx).mutex_);
        return ++of(ctx).now_ns;
    };
    return source;
}

}  // namespace kvo::test

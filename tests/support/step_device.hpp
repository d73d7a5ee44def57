// A device for tests in which nothing happens until the test says so. Streams are queues; run() executes
// them in an order drawn from a seed, and copies happen piece by piece at execution. The destination of a
// copy is poisoned before it, a host slot when the copy is submitted and a device block in the order of its
// stream, so that reading too early shows. Faults are injected by number. Misuse (unknown stream, destroyed
// event) aborts with a line that names it. One lock inside; the order is deterministic when one thread
// drives it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "device/device.hpp"

namespace kvo::test {

class step_device {
public:
    explicit step_device(uint64_t seed = 1) : random_(seed) {}
    device_table table();
    time_source clock();

    void* make_stream();  // an engine's stream
    // Queues work of the engine on a stream.
    void launch(void* stream, void (*fn)(void*), void* arg);
    // Runs everything that can run; false when nothing could.
    bool run();
    // Runs up to n items of one stream.
    uint32_t run_stream(void* stream, uint32_t n);
    bool idle();

    // ---- faults ----
    static constexpr uint64_t kNever = UINT64_MAX;
    uint64_t fail_batch = kNever;         // the k-th copy_batch call from now on fails ...
    uint32_t fail_batch_after = 0;        // ... after this many pieces
    uint64_t fail_execution = kNever;     // the k-th copied piece fails: events behind it tell
    uint64_t fail_record = kNever;        // the k-th event_record call fails
    uint64_t fail_wait = kNever;          // the k-th stream_wait call fails
    bool lost = false;                    // device loss: sticky
    void* capturing = reinterpret_cast<void*>(uintptr_t{0xFFFF});  // this stream is being captured

    struct counts_t {
        uint64_t batches = 0, pieces = 0, records = 0, waits = 0, queries = 0, largest_batch = 0;
        std::map<void*, uint64_t> by_stream;  // copies, records and waits
    };
    counts_t counts;
    uint64_t now_ns = 1;  // virtual time; every poll and submit costs a little

private:
    struct event_state {
        uint64_t target = 0, reached = 0;
        status result = KVO_OK;
    };
    enum class kind : uint8_t { copy, poison, run, record, wait };
    struct item {
        kind what = kind::run;
        copy_piece piece{};
        void (*fn)(void*) = nullptr;
        void* arg = nullptr;
        uint64_t event = 0, number = 0;
    };
    struct stream_state {
        std::deque<item> queue;
        status failed = KVO_OK;  // since the last record
    };

    static step_device& of(void* ctx) { return *static_cast<step_device*>(ctx); }
    stream_state& stream_of(void* stream, const char* call);
    event_state& event_of(void* event, const char* call);
    bool can_run(const stream_state& s);
    void run_one(stream_state& s);
    status submit(void* stream, copy_direction direction, const copy_piece* pieces, uint32_t n,
                  uint32_t* n_queued);

    std::mutex mutex_;
    std::mt19937_64 random_;
    std::map<uintptr_t, stream_state> streams_;
    std::map<uint64_t, event_state> events_;
    uintptr_t next_stream_ = 0x100;
    uint64_t next_event_ = 1;
};

}  // namespace kvo::test

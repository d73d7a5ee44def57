// What every device table must do, run over the host device and the step device.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "device/host_copy.hpp"
#include "device/host_streams.hpp"
#include "support/catch.hpp"
#include "support/step_device.hpp"

using namespace kvo;

namespace {

struct device_under_test {
    virtual ~device_under_test() = default;
    virtual device_table table() = 0;
    virtual void* engine_stream() = 0;
    virtual void launch(void* stream, void (*fn)(void*), void* arg) = 0;
    virtual void settle() = 0;  // lets everything queued run
};

struct host_under_test final : device_under_test {
    std::vector<void*> streams;
    device_table table() override { return host_device(); }
    void* engine_stream() override {
        void* s = nullptr;
        REQUIRE(host_stream_create(&s) == KVO_OK);
        streams.push_back(s);
        return s;
    }
    void launch(void* stream, void (*fn)(void*), void* arg) override {
        REQUIRE(host_stream_run(stream, fn, arg) == KVO_OK);
    }
    void settle() override {
        for (void* s : streams) REQUIRE(host_stream_sync(s) == KVO_OK);
    }
    ~host_under_test() override {
        for (void* s : streams) (void)host_stream_destroy(s);
    }
};

struct step_under_test final : device_under_test {
    test::step_device device{7};
    device_table table() override { return device.table(); }
    void* engine_stream() override { return device.make_stream(); }
    void launch(void* stream, void (*fn)(void*), void* arg) override { device.launch(stream, fn, arg); }
    void settle() override { device.run(); }
};

// Work that waits until the test lets it go; on the step device it never has to wait.
struct gate {
    std::atomic<bool> open{false};
    static void wait(void* self) {
        while (!static_cast<gate*>(self)->open.load()) std::this_thread::yield();
    }
};

template <typename Check>
void on_both(Check check) {
    {
        INFO("host device");
        host_under_test device;
        check(device);
    }
    {
        INFO("step device");
        step_under_test device;
        check(device);
    }
}

}  // namespace

TEST_CASE("an event that was never recorded is done") {
    on_both([](device_under_test& d) {
        const auto t = d.table();
        void* event = nullptr;
        REQUIRE(t.event_create(t.context, &event) == KVO_OK);
        CHECK(t.event_query(t.context, event) == KVO_OK);
        t.event_destroy(t.context, event);
    });
}

TEST_CASE("copies read what the stream before them wrote, and events tell when they are done") {
    on_both([](device_under_test& d) {
        const auto t = d.table();
        void* stream = d.engine_stream();
        struct work {
            gate g;
            std::vector<uint8_t> src = std::vector<uint8_t>(4096, 1);
            static void fill(void* self) {
                auto* w = static_cast<work*>(self);
                std::memset(w->src.data(), 2, w->src.size());
            }
        } w;
        std::vector<uint8_t> dst(4096, 0);
        d.launch(stream, gate::wait, &w.g);
        d.launch(stream, work::fill, &w);
        const copy_piece piece{dst.data(), w.src.data(), 4096};
        uint32_t n_queued = 0;
        void* event = nullptr;
        REQUIRE(t.event_create(t.context, &event) == KVO_OK);
        REQUIRE(t.copy_batch(t.context, stream, copy_direction::store, &piece, 1, &n_queued) == KVO_OK);
        CHECK(n_queued == 1);
        REQUIRE(t.event_record(t.context, event, stream) == KVO_OK);
        CHECK(t.event_query(t.context, event) == KVO_E_NOT_READY);
        w.g.open = true;
        d.settle();
        CHECK(t.event_query(t.context, event) == KVO_OK);
        CHECK(dst == std::vector<uint8_t>(4096, 2));
        t.event_destroy(t.context, event);
    });
}

TEST_CASE("a wait means the record of its moment, not a later one") {
    on_both([](device_under_test& d) {
        const auto t = d.table();
        void* first = d.engine_stream();
        void* second = d.engine_stream();
        void* third = d.engine_stream();
        void* event = nullptr;
        void* after = nullptr;
        REQUIRE(t.event_create(t.context, &event) == KVO_OK);
        REQUIRE(t.event_create(t.context, &after) == KVO_OK);
        gate one, two;
        d.launch(first, gate::wait, &one);
        REQUIRE(t.event_record(t.context, event, first) == KVO_OK);
        REQUIRE(t.stream_wait(t.context, second, event) == KVO_OK);
        one.open = true;
        d.settle();
        d.launch(third, gate::wait, &two);
        REQUIRE(t.event_record(t.context, event, third) == KVO_OK);
        REQUIRE(t.event_record(t.context, after, second) == KVO_OK);
        two.open = true;
        d.settle();
        CHECK(t.event_query(t.context, after) == KVO_OK);
        CHECK(t.event_query(t.context, event) == KVO_OK);
        t.event_destroy(t.context, event);
        t.event_destroy(t.context, after);
    });
}

TEST_CASE("a stream destroyed with work in its queue still runs it") {
    on_both([](device_under_test& d) {
        const auto t = d.table();
        void* stream = nullptr;
        void* event = nullptr;
        REQUIRE(t.stream_create(t.context, &stream) == KVO_OK);
        REQUIRE(t.event_create(t.context, &event) == KVO_OK);
        std::vector<uint8_t> src(64 * 512, 5), dst(64 * 512, 0);
        std::vector<copy_piece> pieces;
        for (size_t i = 0; i < 64; ++i) pieces.push_back({&dst[i * 512], &src[i * 512], 512});
        uint32_t n_queued = 0;
        REQUIRE(t.copy_batch(t.context, stream, copy_direction::load, pieces.data(), 64, &n_queued) == KVO_OK);
        REQUIRE(t.event_record(t.context, event, stream) == KVO_OK);
        t.stream_destroy(t.context, stream);
        while (t.event_query(t.context, event) == KVO_E_NOT_READY) d.settle();
        CHECK(dst == src);
        t.event_destroy(t.context, event);
    });
}

TEST_CASE("an event may be destroyed while its record is still queued") {
    on_both([](device_under_test& d) {
        const auto t = d.table();
        void* stream = d.engine_stream();
        void* event = nullptr;
        gate g;
        REQUIRE(t.event_create(t.context, &event) == KVO_OK);
        d.launch(stream, gate::wait, &g);
        REQUIRE(t.event_record(t.context, event, stream) == KVO_OK);
        t.event_destroy(t.context, event);
        g.open = true;
        d.settle();
    });
}

TEST_CASE("foreign streams are refused by the host device") {
    const auto& t = host_device();
    CHECK(t.stream_check(t.context, reinterpret_cast<void*>(uintptr_t{0x77})) == KVO_E_ARGUMENT);
    CHECK(t.stream_check(t.context, nullptr) == KVO_OK);
    CHECK(host_stream_destroy(reinterpret_cast<void*>(uintptr_t{0x77})) == KVO_E_HANDLE);
    CHECK(std::string(error_text()).find("0x77") != std::string::npos);
}

TEST_CASE("copies of any size and alignment move exactly their bytes") {
    std::vector<uint8_t> src(400'000), dst(400'200);
    for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint8_t>(i * 7 + i / 251);
    for (size_t bytes : std::vector<size_t>{0, 1, 63, 64, 65, 127, 200, 4096, 4099, 300'001}) {
        for (size_t offset : std::vector<size_t>{0, 1, 33, 64}) {
            std::fill(dst.begin(), dst.end(), uint8_t{0xEE});
            non_temporal_copy(&dst[offset], &src[offset / 2], bytes);
            copy_fence();
            CHECK(std::memcmp(&dst[offset], &src[offset / 2], bytes) == 0);
            CHECK(std::count(dst.begin(), dst.begin() + static_cast<long>(offset), uint8_t{0xEE}) ==
                  static_cast<long>(offset));
            CHECK(dst[offset + bytes] == 0xEE);
        }
    }
}

TEST_CASE("queueing never waits, however much is queued") {
    host_under_test d;
    const device_table t = d.table();
    void* const stream = d.engine_stream();
    gate first;
    d.launch(stream, gate::wait, &first);
    constexpr uint32_t kMany = 3 * kHostStreamDepth;
    std::vector<uint32_t> from(kMany), to(kMany);
    for (uint32_t i = 0; i < kMany; ++i) from[i] = i + 1;
    for (uint32_t i = 0; i < kMany; ++i) {
        const copy_piece piece{&to[i], &from[i], sizeof(uint32_t)};
        uint32_t n = 0;
        REQUIRE(t.copy_batch(t.context, stream, copy_direction::load, &piece, 1, &n) == KVO_OK);
    }
    CHECK(to[0] == 0);  // nothing has run
    first.open = true;
    d.settle();
    CHECK(to == from);
}

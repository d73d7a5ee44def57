// Two copies of the shared object in one process, as when two plug-ins each bring their own: loaded
// from two file paths with RTLD_LOCAL, used in turn, neither disturbs the other. Both are opened
// again after dlclose, which unmaps nothing.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <kvoffload/kvoffload.h>
#include <string>
#include <vector>

namespace {

int failures = 0;
#define CHECK(what) \
    do {            \
        if (!(what)) ++failures, std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
    } while (0)

struct library {
    void* handle = nullptr;
#define FUNCTION(name) decltype(&::name) name = nullptr
    FUNCTION(kvo_cache_create);
    FUNCTION(kvo_register_group);
    FUNCTION(kvo_cache_start);
    FUNCTION(kvo_cache_shutdown);
    FUNCTION(kvo_cache_destroy);
    FUNCTION(kvo_store);
    FUNCTION(kvo_match);
    FUNCTION(kvo_load);
    FUNCTION(kvo_op_wait);
    FUNCTION(kvo_ticket_release);
    FUNCTION(kvo_last_error);
#undef FUNCTION

    bool open(const std::string& path) {
        handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), false;
#define FIND(name) name = reinterpret_cast<decltype(name)>(dlsym(handle, #name))
        FIND(kvo_cache_create);
        FIND(kvo_register_group);
        FIND(kvo_cache_start);
        FIND(kvo_cache_shutdown);
        FIND(kvo_cache_destroy);
        FIND(kvo_store);
        FIND(kvo_match);
        FIND(kvo_load);
        FIND(kvo_op_wait);
        FIND(kvo_ticket_release);
        FIND(kvo_last_error);
#undef FIND
        return kvo_last_error != nullptr;
    }
};

constexpr uint32_t kBlocks = 4, kBytes = 4096;

struct user {
    library lib;
    std::vector<unsigned char> device = std::vector<unsigned char>(kBlocks * kBytes);
    kvo_cache_t* cache = nullptr;

    void start() {
        kvo_config_t config = KVO_CONFIG_INIT;
        config.budget_bytes = 64u << 20;
        config.block_tokens = 16;
        config.setup = KVO_SETUP_EAGER;
        CHECK(lib.kvo_cache_create(&config, &cache) == KVO_OK);
        const kvo_part_t part = {device.data(), kBytes, kBytes, kBytes, 1, 0};
        kvo_group_config_t group = KVO_GROUP_CONFIG_INIT;
        group.n_device_blocks = kBlocks;
        group.n_parts = 1;
        group.parts = &part;
        uint32_t number = 0;
        CHECK(lib.kvo_register_group(cache, &group, &number) == KVO_OK);
        CHECK(lib.kvo_cache_start(cache) == KVO_OK);
    }
    // Stores one block full of `letter` under the same key as everybody.
    void store(char letter) {
        std::memset(device.data(), letter, kBytes);
        const kvo_key_t key = {{1, 2, 3}};
        const uint32_t id = 0;
        const kvo_blocks_t src = {0, 1, &id};
        kvo_store_options_t options = KVO_STORE_OPTIONS_INIT;
        kvo_store_result_t result;
        kvo_op_t op = {0};
        CHECK(lib.kvo_store(cache, {0}, &key, 1, nullptr, &src, 1, KVO_STREAM_IDLE, &options,
                            &result, &op) == KVO_OK);
        CHECK(result.n_taken == 1);
        wait(op);
    }
    char load() {
        const kvo_key_t key = {{1, 2, 3}};
        kvo_ticket_t ticket = {0};
        kvo_match_t found = {0, 0};
        CHECK(lib.kvo_match(cache, {0}, &key, 1, 0, nullptr, &ticket, &found) == KVO_OK);
        CHECK(found.n_ready == 1);
        const uint32_t id = 3;
        const kvo_blocks_t dst = {0, 1, &id};
        kvo_op_t op = {0};
        CHECK(lib.kvo_load(cache, ticket, 0, 1, &dst, 1, KVO_STREAM_IDLE, nullptr, &op) == KVO_OK);
        wait(op);
        CHECK(lib.kvo_ticket_release(cache, ticket) == KVO_OK);
        return static_cast<char>(device[3 * kBytes + 17]);
    }
    void stop() {
        CHECK(lib.kvo_cache_shutdown(cache, KVO_FOREVER) == KVO_OK);
        CHECK(lib.kvo_cache_destroy(cache, 0) == KVO_OK);
        cache = nullptr;
    }

private:
    void wait(kvo_op_t op) {
        kvo_completion_t done;
        CHECK(lib.kvo_op_wait(cache, op, KVO_FOREVER, &done) == KVO_OK);
        CHECK(done.status == KVO_OK && done.n_done == 1);
    }
};

std::string path_of_this_library() {
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(&kvo_last_error), &info) != 0 ? info.dli_fname : "";
}

}  // namespace

int main() {
    const std::string first = path_of_this_library();
    char second[] = "/tmp/kvo_copy_XXXXXX";
    const int fd = mkstemp(second);
    if (first.empty() || fd < 0) return 77;
    close(fd);
    std::ofstream(second, std::ios::binary) << std::ifstream(first, std::ios::binary).rdbuf();

    user a, b;
    if (!a.lib.open(first) || !b.lib.open(second)) return 1;
    CHECK(a.lib.kvo_store != b.lib.kvo_store);
    a.start();
    b.start();
    a.store('a');
    b.store('b');
    CHECK(a.load() == 'a');
    CHECK(b.load() == 'b');

    // Error texts are each copy's own.
    CHECK(a.lib.kvo_ticket_release(a.cache, {12345}) == KVO_E_HANDLE);
    CHECK(std::strlen(a.lib.kvo_last_error()) > 0);
    CHECK(b.lib.kvo_ticket_release(b.cache, {0}) == KVO_E_HANDLE);
    CHECK(std::strcmp(a.lib.kvo_last_error(), b.lib.kvo_last_error()) != 0);

    // One of them goes while the other works; nothing is unmapped under live threads.
    b.stop();
    CHECK(dlclose(b.lib.handle) == 0);
    CHECK(a.load() == 'a');
    CHECK(dlclose(a.lib.handle) == 0);
    CHECK(a.load() == 'a');
    a.stop();
    unlink(second);
    if (failures == 0) std::puts("two copies worked side by side");
    return failures == 0 ? 0 : 1;
}

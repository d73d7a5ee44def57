#include "memory/headroom.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"

using kvo::read_headroom;
namespace fs = std::filesystem;

namespace {

// A tree with just the files a test puts there.
struct fake_root {
    fake_root() {
        char name[] = "/tmp/kvo_headroom_XXXXXX";
        path = mkdtemp(name);
    }
    ~fake_root() { fs::remove_all(path); }
    void file(const std::string& name, const std::string& text) const {
        fs::create_directories(fs::path(path + name).parent_path());
        std::ofstream(path + name) << text;
    }
    std::string path;
};

constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace

TEST_CASE("without cgroups the machine's available memory counts") {
    fake_root r;
    r.file("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    2048 kB\n");
    CHECK(read_headroom(r.path).available_bytes == 2048 * 1024);
    CHECK(read_headroom(r.path).limited_by == "MemAvailable");
}

TEST_CASE("the tightest cgroup above the process counts, version 2, without droppable file cache") {
    fake_root r;
    r.file("/proc/meminfo", "MemAvailable: 104857600 kB\n");
    r.file("/proc/self/cgroup", "0::/a/b\n");
    r.file("/sys/fs/cgroup/a/b/memory.max", "max\n");
    r.file("/sys/fs/cgroup/a/b/memory.current", "5000\n");
    r.file("/sys/fs/cgroup/a/memory.max", std::to_string(4 * kGiB) + "\n");
    r.file("/sys/fs/cgroup/a/memory.current", std::to_string(3 * kGiB) + "\n");
    r.file("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file " + std::to_string(kGiB) + "\n");
    const auto room = read_headroom(r.path);
    CHECK(room.available_bytes == 2 * kGiB);
    CHECK(room.limited_by == r.path + "/sys/fs/cgroup/a/memory.max");
}

TEST_CASE("version 1 limits count and its huge default does not") {
    fake_root r;
    r.file("/proc/meminfo", "MemAvailable: 104857600 kB\n");
    r.file("/proc/self/cgroup", "5:cpu,memory:/box\n1:name=systemd:/\n");
    r.file("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824");
    r.file("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1000");
    r.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    r.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000");
    CHECK(read_headroom(r.path).available_bytes == kGiB - 1000);
}

TEST_CASE("damaged files are passed over") {
    fake_root r;
    r.file("/proc/meminfo", "MemAvailable: lots\n");
    r.file("/proc/self/cgroup", "nonsense\n0::relative\n0::/x\n");
    r.file("/sys/fs/cgroup/x/memory.max", "-5\n");
    r.file("/sys/fs/cgroup/x/memory.current", "\n");
    CHECK(read_headroom(r.path).limited_by == "no limit found");
}

TEST_CASE("this machine answers") { CHECK(read_headroom().available_bytes > 0); }

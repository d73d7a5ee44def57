#include "memory/headroom.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace kvo {

namespace {

// Values this large mean "no limit" (cgroup v1 writes 2^63 rounded down to a page).
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::optional<uint64_t> parse_number(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return value;
}

std::optional<uint64_t> read_number(const std::string& path) {
    std::ifstream in(path);
    std::string text;
    if (!(in >> text)) return std::nullopt;
    return parse_number(text);
}

// The number after `name` at the start of a line, as in /proc/meminfo and memory.stat.
std::optional<uint64_t> read_field(const std::string& path, const std::string& name) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string first, second;
        if (words >> first >> second && first == name) return parse_number(second);
    }
    return std::nullopt;
}

struct cgroup_files {
    const char* limit;
    const char* usage;
    const char* file_cache;  // field of memory.stat that the kernel can drop at once
};
constexpr cgroup_files kV2{"memory.max", "memory.current", "inactive_file"};
constexpr cgroup_files kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// The tightest of this cgroup and all above it, up to the mount.
void tighten(const std::string& mount, std::string path, const cgroup_files& files, headroom* out) {
    while (true) {
        const std::string folder = mount + path;
        const auto limit = read_number(folder + "/" + files.limit);
        const auto usage = read_number(folder + "/" + files.usage);
        if (limit && usage && *limit < kNoLimit) {
            const uint64_t dropped = read_field(folder + "/memory.stat", files.file_cache).value_or(0);
            const uint64_t used = *usage - std::min(*usage, dropped);
            const uint64_t left = *limit - std::min(*limit, used);
            if (left < out->available_bytes) *out = {left, folder + "/" + files.limit};
        }
        if (path.empty() || path == "/") return;
        path.resize(path.find_last_of('/'));
    }
}

}  // namespace

headroom read_headroom(const std::string& root) {
    headroom result{kNoLimit, "no limit found"};
    if (const auto kib = read_field(root + "/proc/meminfo", "MemAvailable:")) {
        result = {*kib * 1024, "MemAvailable"};
    }
    // Lines are "number:controllers:path"; version 2 has number 0 and no controllers.
    std::ifstream in(root + "/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (path.empty() || path.front() != '/') continue;
        if (controllers.empty()) {
            tighten(root + "/sys/fs/cgroup", path, kV2, &result);
        } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
            tighten(root + "/sys/fs/cgroup/memory", path, kV1, &result);
        }
    }
    return result;
}

}  // namespace kvo

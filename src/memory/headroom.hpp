// How much memory this process may still take: the machine's available memory and the limits of the
// cgroups above the process (v1 and v2), whichever is smaller. Reads /proc and /sys; any thread; blocks for
// the file reads; not for hot paths.
#pragma once

#include <cstdint>
#include <string>

namespace kvo {

struct headroom {
    uint64_t available_bytes = 0;
    std::string limited_by;  // "MemAvailable", or the cgroup file that is the tightest
};

// root: prefix for /proc and /sys, "" in production; tests point it at a tree of their own.
headroom read_headroom(const std::string& root = "");

}  // namespace kvo

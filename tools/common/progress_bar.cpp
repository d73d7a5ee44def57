#include "common/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace kvo::tools {
namespace {

constexpr size_t kBarColumns = 30;
constexpr auto kDrawInterval = std::chrono::milliseconds(100);

}  // namespace

progress_bar::progress_bar(std::string label)
    : label_(std::move(label)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

progress_bar::~progress_bar() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void progress_bar::update(uint64_t done, uint64_t total) {
    if (!on_terminal_ || clock::now() < next_draw_) return;
    next_draw_ = clock::now() + kDrawInterval;
    drawn_ = true;
    if (total == 0) {
        fmt::print(stderr, "\r\x1b[K{} {}", label_, done);
    } else {
        const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
        const auto filled = static_cast<size_t>(share * kBarColumns);
        fmt::print(stderr, "\r\x1b[K{} [{:<{}}] {:3.0f} %", label_, std::string(filled, '#'),
                   kBarColumns, share * 100);
    }
    std::fflush(stderr);
}

}  // namespace kvo::tools

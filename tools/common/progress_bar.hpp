// A one-line progress bar on standard error, shown only when that is a terminal and removed at the
// end, so that it never mixes with output. One user at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvo::tools {

class progress_bar {
public:
    explicit progress_bar(std::string label);
    ~progress_bar();
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    // Draws at most ten times a second. total 0: not known, only the amount is shown.
    void update(uint64_t done, uint64_t total);

private:
    using clock = std::chrono::steady_clock;

    std::string label_;
    bool on_terminal_;
    bool drawn_ = false;
    clock::time_point next_draw_{};
};

}  // namespace kvo::tools

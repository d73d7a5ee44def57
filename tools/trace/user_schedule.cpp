#include "trace/user_schedule.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace kvo::trace {
namespace {

constexpr int64_t kPauseUs = 60'000'000;
// 1 GiB of ids.
constexpr size_t kTailIdsMax = size_t{1} << 28;
// Five years: clocks of all sessions of a user added up stay far below 2^63 us.
constexpr int64_t kSessionUsMax = int64_t{5} * 366 * 86'400 * 1'000'000;

}  // namespace

reason user_schedule::add_session(const std::vector<session_request>& requests) {
    std::unordered_map<uint32_t, const std::vector<uint32_t>*> lists;
    const uint32_t session = sessions_++;
    int64_t& clock_us = clocks_us_[session % clocks_us_.size()];
    if (requests.empty()) return std::nullopt;
    const int64_t start_us = clock_us;
    for (size_t i = 0; i < requests.size(); ++i) {
        const session_request& r = requests[i];
        const int64_t since_us = r.time_us - requests.front().time_us;
        if (since_us > kSessionUsMax) return "a session longer than five years";
        const std::vector<uint32_t>*& before = lists[r.agent];
        auto tail = r.ids.begin();
        if (before != nullptr) {
            tail = std::mismatch(r.ids.begin(), r.ids.end(), before->begin(), before->end()).first;
        }
        before = &r.ids;
        entries_.push_back({.arrival_us = start_us + since_us,
                            .input_tokens = r.input_tokens,
                            .output_tokens = r.output_tokens,
                            .tail_begin = tails_.size(),
                            .tail_count = static_cast<uint32_t>(r.ids.end() - tail),
                            .kept = static_cast<uint32_t>(tail - r.ids.begin()),
                            .session = session,
                            .index = static_cast<uint32_t>(i),
                            .agent = r.agent});
        tails_.insert(tails_.end(), tail, r.ids.end());
        clock_us = start_us + since_us + kPauseUs;
    }
    if (tails_.size() > kTailIdsMax)
        return "the sessions together have more than 268435456 new ids";
    return std::nullopt;
}

void user_schedule::merge(const request_sink& sink) {
    struct user_state {
        uint32_t session = 0;
        std::unordered_map<uint32_t, std::vector<uint32_t>> lists;
    };
    std::sort(entries_.begin(), entries_.end(), [this](const entry& a, const entry& b) {
        return std::tuple(a.arrival_us, user_of(a), a.session, a.index) <
               std::tuple(b.arrival_us, user_of(b), b.session, b.index);
    });
    std::vector<user_state> users(clocks_us_.size());
    request out;
    for (const entry& e : entries_) {
        user_state& user = users[user_of(e)];
        if (user.session != e.session) {
            user.lists.clear();
            user.session = e.session;
        }
        std::vector<uint32_t>& list = user.lists[e.agent];
        const auto tail = tails_.begin() + static_cast<std::ptrdiff_t>(e.tail_begin);
        list.resize(e.kept);
        list.insert(list.end(), tail, tail + e.tail_count);
        out.timestamp_ms = static_cast<double>(e.arrival_us) / 1e3;
        out.input_tokens = e.input_tokens;
        out.output_tokens = e.output_tokens;
        out.session = e.session;
        out.ids = list;
        sink(out);
    }
}

}  // namespace kvo::trace

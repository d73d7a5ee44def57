// Replays recorded sessions by a fixed number of users side by side and merges their requests by
// arrival. Lists of ids are kept as differences from the request before, since a whole schedule
// written out would be a hundred times larger. One user at a time.
//
// User u replays sessions u, u + users, u + 2 users, ...; its clock starts at 0, and the next
// session starts 60 s after the arrival of the last request of the one before.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/json_line.hpp"
#include "trace/trace.hpp"

namespace kvo::trace {

struct session_request {
    int64_t time_us = 0;  // from any fixed point of the session
    uint64_t input_tokens = 0;
    uint64_t output_tokens = 0;
    uint32_t agent = 0;  // whose list of ids this is
    std::vector<uint32_t> ids;
};

class user_schedule {
public:
    explicit user_schedule(uint32_t users) : clocks_us_(users, 0) {}

    // The next session, its requests in order of time. The reason when the schedule has grown too
    // large.
    reason add_session(const std::vector<session_request>& requests);
    // Hands out everything by (arrival, user, session, place in the session).
    void merge(const request_sink& sink);

private:
    struct entry {
        int64_t arrival_us;
        uint64_t input_tokens;
        uint64_t output_tokens;
        uint64_t tail_begin;  // in tails_
        uint32_t tail_count;
        uint32_t kept;  // ids that are those of the agent's request before
        uint32_t session;
        uint32_t index;
        uint32_t agent;
    };

    uint32_t user_of(const entry& e) const {
        return e.session % static_cast<uint32_t>(clocks_us_.size());
    }

    std::vector<int64_t> clocks_us_;
    std::vector<entry> entries_;
    std::vector<uint32_t> tails_;
    uint32_t sessions_ = 0;
};

}  // namespace kvo::trace

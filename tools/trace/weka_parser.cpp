// WEKA agent sessions: a line with "trace" opens a session, each line after it is one request with
// its ids as differences, local to the session. A session is collected, sorted by time, numbered
// and put into the schedule; the merged schedule is handed out at the end of the file. One user at
// a time.
#include <algorithm>
#include <cmath>
#include <map>

#include "trace/coarse.hpp"
#include "trace/delta.hpp"
#include "trace/dense_numbers.hpp"
#include "trace/json_line.hpp"
#include "trace/line_parser.hpp"
#include "trace/user_schedule.hpp"

namespace kvo::trace {
namespace {

// Ids that the lists of one session hold together, twenty times the largest known session; 64 MiB.
constexpr uint64_t kSessionIdsMax = uint64_t{1} << 24;
constexpr double kSecondsMax = 1e9;

class weka_parser final : public line_parser {
public:
    weka_parser(const read_options& options, const request_sink& sink)
        : block_tokens_(options.block_tokens), schedule_(options.users), sink_(sink) {}

    std::optional<fault> line(std::string_view text, uint64_t) override {
        reason why = parse_object(text, &object_);
        if (!why) why = object_.contains("trace") ? open_session() : add_request();
        return why ? std::optional(fault{*why}) : std::nullopt;
    }

    std::optional<fault> finish() override {
        if (auto why = close_session()) return fault{*why};
        schedule_.merge(sink_);
        return std::nullopt;
    }

    uint32_t unique_blocks() const override { return unique_blocks_; }

private:
    reason open_session() {
        if (auto why = close_session()) return why;
        if (auto why = get_count(object_, "block", &piece_tokens_)) return why;
        if (piece_tokens_ == 0 || block_tokens_ % piece_tokens_ != 0) {
            return "the session's blocks of " + std::to_string(piece_tokens_) +
                   " tokens do not divide the blocks of " + std::to_string(block_tokens_) +
                   " tokens to count in; give a multiple with --block-tokens";
        }
        return std::nullopt;
    }

    reason add_request() {
        if (piece_tokens_ == 0) return "a request before the first session line";
        session_request r;
        double seconds = 0;
        if (auto why = get_time(object_, "t", &seconds)) return why;
        if (seconds > kSecondsMax) return "t is " + shown(object_["t"]) + " s, more than 30 years";
        if (auto why = get_count(object_, "i", &r.input_tokens)) return why;
        if (auto why = get_optional_count(object_, "o", &r.output_tokens)) return why;
        r.time_us = std::llround(seconds * 1e6);
        const auto agent = object_.find("g");
        const auto next = static_cast<uint32_t>(agents_.size());
        r.agent =
            agents_.try_emplace(agent == object_.end() ? "" : agent->dump(), next).first->second;

        std::vector<uint32_t>& list = lists_[r.agent];
        auto why = apply_delta(object_, r.input_tokens / piece_tokens_, piece_numbering_, &list);
        if (why) return why;
        append_coarse(list, block_tokens_ / piece_tokens_, &r.ids);
        session_ids_ += r.ids.size();
        if (session_ids_ > kSessionIdsMax)
            return "a session with more than 16777216 ids in its lists";
        requests_.push_back(std::move(r));
        return std::nullopt;
    }

    // The ids of a session are its own, so its numbers start where those of the session before end;
    // they go by first appearance in order of time, which is not always the order of the lines.
    reason close_session() {
        constexpr uint32_t none = kUniqueBlocksMax;
        if (piece_tokens_ == 0) return std::nullopt;
        std::stable_sort(requests_.begin(), requests_.end(),
                         [](const session_request& a, const session_request& b) {
                             return a.time_us < b.time_us;
                         });
        std::vector<uint32_t> numbers(pieces_.count(), none);
        for (session_request& r : requests_) {
            for (uint32_t& id : r.ids) {
                if (numbers[id] == none) numbers[id] = unique_blocks_++;
                id = numbers[id];
            }
        }
        if (unique_blocks_ >= kUniqueBlocksMax) return kTooManyUnique;
        auto why = schedule_.add_session(requests_);
        requests_.clear();
        lists_.clear();
        agents_.clear();
        pieces_.clear();
        session_ids_ = 0;
        return why;
    }

    uint32_t block_tokens_;
    user_schedule schedule_;
    const request_sink& sink_;
    json object_;
    uint32_t unique_blocks_ = 0;

    // The open session.
    uint64_t piece_tokens_ = 0;  // 0: none open yet
    uint64_t session_ids_ = 0;
    std::vector<session_request> requests_;
    std::map<std::string, uint32_t> agents_;
    std::map<uint32_t, std::vector<uint32_t>> lists_;
    dense_numbers<uint64_t> pieces_;
    id_numbering piece_numbering_ = [this](uint64_t id, uint32_t* number) -> reason {
        if (!pieces_.number_of(id, number)) return kTooManyUnique;
        return std::nullopt;
    };
};

}  // namespace

std::unique_ptr<line_parser> make_weka_parser(const read_options& options,
                                              const request_sink& sink) {
    return std::make_unique<weka_parser>(options, sink);
}

}  // namespace kvo::trace

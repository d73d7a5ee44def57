// LMCache agent lines: one list a session, as differences, over pieces of 64 bytes of text. The
// parser owns the last list of every session. One user at a time.
#include <unordered_map>

#include "trace/coarse.hpp"
#include "trace/delta.hpp"
#include "trace/dense_numbers.hpp"
#include "trace/json_line.hpp"
#include "trace/line_parser.hpp"

namespace kvo::trace {
namespace {

constexpr uint64_t kPieceBytes = 64;
constexpr uint64_t kBytesPerToken = 4;  // so a piece is about 16 tokens
constexpr uint64_t kPieceTokens = kPieceBytes / kBytesPerToken;
// Ids that all sessions hold together; 512 MiB.
constexpr uint64_t kHeldIdsMax = uint64_t{1} << 27;

uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

class lmcache_parser final : public line_parser {
public:
    lmcache_parser(uint32_t block_tokens, const request_sink& sink)
        : pieces_(block_tokens / kPieceTokens), sink_(sink) {}

    std::optional<fault> line(std::string_view text, uint64_t) override {
        if (auto why = parse(text)) return fault{*why};
        sink_(request_);
        return std::nullopt;
    }

    uint32_t unique_blocks() const override { return pieces_ == 1 ? piece_numbers_.count() : blocks_.count(); }

private:
    reason parse(std::string_view text) {
        uint64_t input_bytes = 0;
        uint64_t output_bytes = 0;
        if (auto why = parse_object(text, &object_)) return why;
        if (auto why = get_time(object_, "timestamp", &request_.timestamp_ms)) return why;
        if (auto why = clock_.advance(request_.timestamp_ms, shown(object_["timestamp"])))
            return why;
        if (auto why = get_count(object_, "session", &request_.session)) return why;
        if (auto why = get_count(object_, "input_bytes", &input_bytes)) return why;
        if (auto why = get_optional_count(object_, "output_bytes", &output_bytes)) return why;
        request_.input_tokens = divide_up(input_bytes, kBytesPerToken);
        request_.output_tokens = divide_up(output_bytes, kBytesPerToken);

        std::vector<uint32_t>& list = lists_[request_.session];
        held_ids_ -= list.size();
        auto why =
            apply_delta(object_, divide_up(input_bytes, kPieceBytes), pieces_numbering_, &list);
        if (why) return why;
        held_ids_ += list.size();
        if (held_ids_ > kHeldIdsMax) return "the sessions together hold more than 134217728 ids";
        return number_blocks(list);
    }

    // The ids that remain after coarsening are numbered again, so that the numbers have no gaps.
    reason number_blocks(const std::vector<uint32_t>& list) {
        if (pieces_ == 1) {
            request_.ids = list;
            return std::nullopt;
        }
        request_.ids.clear();
        append_coarse(list, pieces_, &request_.ids);
        for (uint32_t& id : request_.ids) {
            if (!blocks_.number_of(id, &id)) return kTooManyUnique;
        }
        return std::nullopt;
    }

    size_t pieces_;
    const request_sink& sink_;
    clock_check clock_;
    dense_numbers<uint64_t> piece_numbers_;
    dense_numbers<uint32_t> blocks_;
    id_numbering pieces_numbering_ = [this](uint64_t id, uint32_t* number) -> reason {
        if (!piece_numbers_.number_of(id, number)) return kTooManyUnique;
        return std::nullopt;
    };
    std::unordered_map<uint64_t, std::vector<uint32_t>> lists_;
    uint64_t held_ids_ = 0;
    json object_;
    request request_;
};

}  // namespace

std::unique_ptr<line_parser> make_lmcache_parser(const read_options& options,
                                                 const request_sink& sink) {
    return std::make_unique<lmcache_parser>(options.block_tokens, sink);
}

}  // namespace kvo::trace

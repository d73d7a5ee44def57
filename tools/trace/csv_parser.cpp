// Lines of "timestamp,key,...": one access each. Lines that begin with a number sign and a first
// line of column names are skipped. The parser owns the numbers of the keys. One user at a time.
#include <charconv>
#include <cmath>

#include "trace/dense_numbers.hpp"
#include "trace/json_line.hpp"
#include "trace/line_parser.hpp"

namespace kvo::trace {
namespace {

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_time_heading(std::string_view field) {
    std::string lower(field);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower == "time" || lower == "timestamp" || lower == "timestamp_ms";
}

class csv_parser final : public line_parser {
public:
    csv_parser(uint32_t block_tokens, const request_sink& sink) : sink_(sink) {
        request_.input_tokens = block_tokens;
        request_.ids.resize(1);
    }

    std::optional<fault> line(std::string_view text, uint64_t) override {
        if (trimmed(text).starts_with('#')) return std::nullopt;
        const bool first = first_;
        first_ = false;
        const size_t comma = text.find(',');
        const std::string_view time = trimmed(text.substr(0, comma));
        const std::string_view rest =
            comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        const std::string_view key = trimmed(rest.substr(0, rest.find(',')));
        if (first && is_time_heading(time)) {
            if (key != "ContextTokens") return std::nullopt;
            return fault{
                "no block ids; stats only: the trace gives lengths, so nothing can be said "
                "about reuse"};
        }
        if (auto why = parse(time, key)) return fault{*why};
        sink_(request_);
        return std::nullopt;
    }

    uint32_t unique_blocks() const override { return numbers_.count(); }

private:
    reason parse(std::string_view time, std::string_view key) {
        const char* end = time.data() + time.size();
        const auto [stop, code] = std::from_chars(time.data(), end, request_.timestamp_ms);
        if (code != std::errc{} || stop != end || !std::isfinite(request_.timestamp_ms) ||
            request_.timestamp_ms < 0) {
            return "timestamp is " + shown(std::string(time)) + ", not a time of 0 or later";
        }
        if (auto why = clock_.advance(request_.timestamp_ms, std::string(time))) return why;
        if (key.empty()) return "no key after the timestamp";
        if (!numbers_.number_of(std::string(key), request_.ids.data())) return kTooManyUnique;
        return std::nullopt;
    }

    const request_sink& sink_;
    clock_check clock_;
    dense_numbers<std::string> numbers_;
    request request_;
    bool first_ = true;
};

}  // namespace

std::unique_ptr<line_parser> make_csv_parser(const read_options& options,
                                             const request_sink& sink) {
    return std::make_unique<csv_parser>(options.block_tokens, sink);
}

}  // namespace kvo::trace

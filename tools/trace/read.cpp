// The driver of all formats: lines in, requests out, faults with their place.
#include <utility>

#include "trace/format.hpp"
#include "trace/line_parser.hpp"
#include "trace/line_reader.hpp"
#include "trace/trace.hpp"

namespace kvo::trace {
namespace {

constexpr uint64_t kLinesPerProgress = 256;
constexpr uint64_t kAccessesMax = uint64_t{1} << 28;

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

error at_line(const std::string& path, uint64_t line_number, const std::string& why) {
    if (line_number == 0) return {display_name(path) + ": " + why};
    return {display_name(path) + ":" + std::to_string(line_number) + ": " + why};
}

error of_reader(const std::string& path, const line_reader& reader) {
    if (reader.line_number() > 0) return at_line(path, reader.line_number(), reader.reason());
    return {display_name(path) + ": offset " + std::to_string(reader.source().offset_bytes()) +
            ": " + reader.reason()};
}

std::unique_ptr<line_parser> make_parser(const read_options& options, const request_sink& sink) {
    switch (options.kind) {
        case format::weka:
            return make_weka_parser(options, sink);
        case format::lmcache:
            return make_lmcache_parser(options, sink);
        case format::csv:
            return make_csv_parser(options, sink);
        case format::mooncake:
        case format::rtpllm:
        case format::automatic:
            break;
    }
    return make_chained_parser(options, sink);
}

// Fills in what the caller left open, once the first line is known.
reason settle(std::string_view first_line, read_options* options) {
    if (options->kind == format::automatic) {
        if (auto why = detect_format(first_line, &options->kind)) return why;
    }
    if (options->block_tokens == 0) options->block_tokens = default_block_tokens(options->kind);
    if (options->users == 0) return "a schedule needs at least one user";
    return check_block_tokens(options->kind, options->block_tokens);
}

}  // namespace

std::optional<error> read_requests(const std::string& path, const read_options& options,
                                   const request_sink& sink, summary* out) {
    std::string why;
    std::unique_ptr<byte_source> source = open_byte_source(path, &why);
    if (source == nullptr) return error{display_name(path) + ": " + why};
    line_reader reader(std::move(source));

    *out = {};
    const request_sink counting_sink = [&](const request& r) {
        if (out->requests++ == 0) out->first_ms = r.timestamp_ms;
        out->last_ms = r.timestamp_ms;
        sink(r);
    };
    read_options settled = options;
    std::unique_ptr<line_parser> parser;
    while (const auto line = reader.next()) {
        const uint64_t number = reader.line_number();
        if (is_blank(*line)) continue;
        if (parser == nullptr) {
            if (auto fault = settle(*line, &settled)) return at_line(path, number, *fault);
            parser = make_parser(settled, counting_sink);
        }
        if (auto fault = parser->line(*line, number)) {
            return at_line(path, fault->line_number != 0 ? fault->line_number : number,
                           fault->reason);
        }
        if (options.on_progress && number % kLinesPerProgress == 0) {
            options.on_progress(reader.source().offset_bytes(), reader.source().size_bytes());
        }
    }
    if (reader.failed()) return of_reader(path, reader);
    if (parser != nullptr) {
        if (auto fault = parser->finish()) return at_line(path, fault->line_number, fault->reason);
        out->unique_blocks = parser->unique_blocks();
    }
    if (out->requests == 0) return at_line(path, 0, "no requests in it");
    out->kind = settled.kind;
    out->block_tokens = settled.block_tokens;
    return std::nullopt;
}

std::optional<error> read_requests(const std::string& path, const read_options& options,
                                   std::vector<request>* out, summary* info) {
    out->clear();
    return read_requests(
        path, options, [out](const request& r) { out->push_back(r); }, info);
}

std::span<const uint32_t> sequence::ids_of(size_t request_index) const {
    const uint64_t begin = request_index == 0 ? 0 : requests[request_index - 1].end;
    return std::span(ids).subspan(begin, requests[request_index].end - begin);
}

std::optional<error> read_sequence(const std::string& path, const read_options& options,
                                   sequence* out) {
    *out = {};
    bool too_long = false;
    auto fault = read_requests(
        path, options,
        [&](const request& r) {
            too_long = too_long || out->ids.size() + r.ids.size() > kAccessesMax;
            if (too_long) return;
            out->ids.insert(out->ids.end(), r.ids.begin(), r.ids.end());
            out->requests.push_back({out->ids.size(), r.input_tokens});
        },
        &out->info);
    if (!fault && too_long) fault = at_line(path, 0, "more than 268435456 accesses");
    return fault;
}

}  // namespace kvo::trace

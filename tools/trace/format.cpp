#include "trace/format.hpp"

#include <algorithm>
#include <array>

namespace kvo::trace {
namespace {

constexpr std::array<const char*, 6> kNames = {"auto", "mooncake", "rtp-llm",
                                               "weka", "lmcache",  "csv"};
constexpr uint32_t kLmcachePieceTokens = 16;

bool looks_like_csv(std::string_view line) {
    const bool text = std::all_of(line.begin(), line.end(), [](char c) {
        return (c >= 0x20 && c != 0x7f) || c == '\t' || (c & 0x80) != 0;
    });
    return text && (line.front() == '#' || line.find(',') != std::string_view::npos);
}

}  // namespace

const char* format_name(format f) { return kNames[static_cast<size_t>(f)]; }

bool parse_format(std::string_view name, format* out) {
    const auto it = std::find(kNames.begin(), kNames.end(), name);
    if (it == kNames.end()) return false;
    *out = static_cast<format>(it - kNames.begin());
    return true;
}

reason detect_format(std::string_view first_line, format* out) {
    if (first_line.front() != '{') {
        *out = format::csv;
        if (looks_like_csv(first_line)) return std::nullopt;
        return "not a known trace: the first line is neither a JSON object nor \"timestamp,key\"";
    }
    json object;
    if (auto why = parse_object(first_line, &object)) return why;
    if (object.contains("hash_ids") || object.contains("input_length")) {
        *out = format::mooncake;
    } else if (object.contains("bh") || object.contains("il")) {
        *out = format::rtpllm;
    } else if (object.contains("trace")) {
        *out = format::weka;
    } else if (object.contains("session") && object.contains("a")) {
        *out = format::lmcache;
    } else {
        return "not a known trace: the first line has none of hash_ids, bh, trace, or session with "
               "a";
    }
    return std::nullopt;
}

uint32_t default_block_tokens(format f) {
    switch (f) {
        case format::mooncake:
        case format::weka:
            return 512;
        case format::rtpllm:
            return 1024;
        case format::lmcache:
            return kLmcachePieceTokens;
        case format::automatic:
        case format::csv:
            break;
    }
    return 0;
}

reason check_block_tokens(format f, uint32_t block_tokens) {
    if (f == format::lmcache && block_tokens % kLmcachePieceTokens != 0) {
        return "blocks of " + std::to_string(block_tokens) +
               " tokens cannot be built from the file's pieces of 64 bytes (about 16 tokens); give "
               "a "
               "multiple of 16 with --block-tokens";
    }
    return std::nullopt;
}

}  // namespace kvo::trace

// Reads request traces: who asked for which cache blocks, when. One entry point for every format,
// so that tests, the command and the demo see the same requests. Errors are values; a fault in the
// file names the file, the line or byte offset, and the reason. No shared state: any thread, one
// file a call.
//
// Block ids come out as dense numbers 0, 1, 2, ... by first appearance (for WEKA sessions: by first
// appearance when walking the sessions one after another). Equal numbers are equal blocks, and in
// every format but csv an id stands for its block and all before it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvo::trace {

enum class format : uint8_t { automatic, mooncake, rtpllm, weka, lmcache, csv };

// "auto", "mooncake", "rtp-llm", "weka", "lmcache", "csv".
const char* format_name(format f);
bool parse_format(std::string_view name, format* out);

struct error {
    std::string text;  // "FILE:LINE: reason" or "FILE: offset N: reason"
};

inline constexpr uint64_t kNoSession = std::numeric_limits<uint64_t>::max();

struct request {
    double timestamp_ms = 0;     // as in the file; WEKA: arrival of the merged schedule
    uint64_t input_tokens = 0;   // lmcache: estimated, a token for 4 bytes; csv: one block
    uint64_t output_tokens = 0;  // lmcache: estimated; csv: 0
    uint64_t session = kNoSession;
    std::vector<uint32_t> ids;
};

struct read_options {
    format kind = format::automatic;
    // Tokens of a block. Mooncake and rtp-llm: what one id of the file covers, which the file does
    // not say. WEKA and lmcache: the block to count in, a multiple of the file's own. 0: 512, 1024,
    // 512, 16; csv: 0.
    uint32_t block_tokens = 0;
    // WEKA only: how many users replay the sessions side by side.
    uint32_t users = 32;
    // Called now and then with bytes of the file read so far and its size (0 when unknown).
    std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

// What was read, known when reading has ended.
struct summary {
    format kind = format::automatic;
    uint32_t block_tokens = 0;  // 0: csv without a block size
    uint64_t requests = 0;
    uint32_t unique_blocks = 0;
    double first_ms = 0;
    double last_ms = 0;
};

using request_sink = std::function<void(const request&)>;

// Reads `path` ("-": standard input; plain, .xz or .gz by content) and hands each request to
// `sink`, in access order. Memory: the numbers of the unique blocks, plus, for the formats that
// store differences, the open sessions (lmcache) or the differences of all sessions (WEKA, which
// must be merged). The request is valid during the call only. After an error some requests may have
// been handed out already.
std::optional<error> read_requests(const std::string& path, const read_options& options,
                                   const request_sink& sink, summary* out);

// The same as a vector.
std::optional<error> read_requests(const std::string& path, const read_options& options,
                                   std::vector<request>* out, summary* info);

// All accesses of a trace in order, four bytes each.
struct sequence {
    struct one_request {
        uint64_t end = 0;  // one past its last access; it begins where the request before it ends
        uint64_t input_tokens = 0;
    };
    summary info;
    std::vector<uint32_t> ids;
    std::vector<one_request> requests;

    std::span<const uint32_t> ids_of(size_t request_index) const;
};

// Refuses more than 2^28 accesses, so that a hostile file cannot take all memory.
std::optional<error> read_sequence(const std::string& path, const read_options& options,
                                   sequence* out);

}  // namespace kvo::trace

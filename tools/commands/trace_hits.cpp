// "kvoffload trace hits": what a cache of N blocks would have hit in a recorded trace.
// Single-threaded.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/commands.hpp"
#include "commands/hit_counter.hpp"
#include "common/progress_bar.hpp"
#include "index/policy.hpp"
#include "trace/trace.hpp"

namespace kvo::tools {
namespace {

struct arguments {
    std::string file;
    std::string format = "auto";
    std::string policy = "lru";
    std::string mode = "flat";
    uint64_t blocks = 0;
    uint32_t block_tokens = 0;
    uint32_t users = 32;
    bool json = false;
};

struct outcome {
    trace::sequence sequence;
    hit_counts counts;
    uint64_t input_tokens = 0;

    uint64_t accesses() const { return sequence.ids.size(); }
    uint64_t unlimited_hits() const { return accesses() - sequence.info.unique_blocks; }
    double span_s() const { return (sequence.info.last_ms - sequence.info.first_ms) / 1e3; }
};

double ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string as_json(const arguments& args, const outcome& out) {
    const trace::summary& info = out.sequence.info;
    const bool has_lengths = info.block_tokens > 0;
    nlohmann::ordered_json j;
    j["file"] = args.file;
    j["format"] = trace::format_name(info.kind);
    j["block_tokens"] = has_lengths ? nlohmann::ordered_json(info.block_tokens) : nullptr;
    j["requests"] = info.requests;
    j["span_s"] = out.span_s();
    j["accesses"] = out.accesses();
    j["unique_blocks"] = info.unique_blocks;
    j["policy"] = args.policy;
    j["mode"] = args.mode;
    j["blocks"] = args.blocks;
    j["hits"] = out.counts.hits;
    j["hit_ratio"] = ratio(out.counts.hits, out.accesses());
    j["hits_unlimited"] = out.unlimited_hits();
    j["hit_ratio_unlimited"] = ratio(out.unlimited_hits(), out.accesses());
    j["input_tokens"] = has_lengths ? nlohmann::ordered_json(out.input_tokens) : nullptr;
    j["hit_tokens"] = has_lengths ? nlohmann::ordered_json(out.counts.hit_tokens) : nullptr;
    return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string as_text(const arguments& args, const outcome& out) {
    const trace::summary& info = out.sequence.info;
    std::string text = fmt::format("trace     {} ({}", args.file, trace::format_name(info.kind));
    if (info.block_tokens > 0) text += fmt::format(", blocks of {} tokens", info.block_tokens);
    text += fmt::format(")\nrequests  {} in {:.1f} s\n", info.requests, out.span_s());
    text +=
        fmt::format("accesses  {}, to {} different blocks\n", out.accesses(), info.unique_blocks);
    text +=
        fmt::format("cache     {} blocks, {}, {} counting\n", args.blocks, args.policy, args.mode);
    text += fmt::format("hits      {} ({:.2f} % of the accesses); {} ({:.2f} %) without limit\n",
                        out.counts.hits, 100 * ratio(out.counts.hits, out.accesses()),
                        out.unlimited_hits(), 100 * ratio(out.unlimited_hits(), out.accesses()));
    if (info.block_tokens > 0) {
        text += fmt::format("tokens    {} of {} prompt tokens in blocks that hit ({:.2f} %)\n",
                            out.counts.hit_tokens, out.input_tokens,
                            100 * ratio(out.counts.hit_tokens, out.input_tokens));
    }
    return text;
}

int run(const arguments& args) {
    hit_question question;
    trace::read_options options;
    if (!parse_policy(args.policy.c_str(), &question.policy)) {
        return complain(kExitInput,
                        fmt::format("--policy {} is not known; lru and arc are", args.policy));
    }
    trace::parse_format(args.format, &options.kind);
    question.mode = args.mode == "prefix" ? hit_mode::prefix : hit_mode::flat;
    question.blocks = args.blocks;
    options.block_tokens = args.block_tokens;
    options.users = args.users;

    outcome out;
    {
        progress_bar bar("reading");
        options.on_progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
        if (auto fault = trace::read_sequence(args.file, options, &out.sequence)) {
            return complain(kExitInput, fault->text);
        }
    }
    for (const auto& request : out.sequence.requests) out.input_tokens += request.input_tokens;
    {
        progress_bar bar("counting");
        out.counts = count_hits(out.sequence, question,
                                [&bar](uint64_t done, uint64_t total) { bar.update(done, total); });
    }
    return print_result(args.json ? as_json(args, out) : as_text(args, out));
}

void add_hits_command(CLI::App& trace_command, int* exit_code) {
    auto args = std::make_shared<arguments>();
    CLI::App* hits = trace_command.add_subcommand(
        "hits", "Count the hits that a cache of a given number of blocks would have had");
    hits->add_option("FILE", args->file,
                     "Trace to read: plain, .xz or .gz by content; - is standard input")
        ->type_name("")
        ->required();
    hits->add_option("--blocks", args->blocks, "Size of the cache in blocks")
        ->required()
        ->type_name("N")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62).description(""));
    hits->add_option("--policy", args->policy, "Which block leaves a full cache: lru or arc")
        ->type_name("POLICY")
        ->capture_default_str();
    hits->add_option("--mode", args->mode,
                     "flat: every block on its own, in order. prefix: the leading run of blocks of "
                     "each request, then its blocks are touched from last to first")
        ->capture_default_str()
        ->type_name("MODE")
        ->check(CLI::IsMember({"flat", "prefix"}).description(""));
    hits->add_option("--format", args->format,
                     "auto looks at the first line; or mooncake, rtp-llm, weka, lmcache, csv "
                     "(timestamp in ms, key)")
        ->capture_default_str()
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"auto", "mooncake", "rtp-llm", "weka", "lmcache", "csv"})
                    .description(""));
    hits->add_option("--block-tokens", args->block_tokens,
                     "Tokens of a block. mooncake, rtp-llm: what one id of the file stands for "
                     "(default 512, 1024). weka, lmcache: the block to count in, a multiple of the "
                     "file's own (default 512; 16, which is 64 bytes of text)")
        ->type_name("N")
        ->check(CLI::Range(1U, 1U << 30).description(""));
    hits->add_option("--users", args->users,
                     "weka: how many users replay the recorded sessions side by side")
        ->capture_default_str()
        ->type_name("N")
        ->check(CLI::Range(1U, 65'536U).description(""));
    hits->add_flag("--json", args->json, "Print the result as JSON");
    hits->footer(
        "Example: kvoffload trace hits conversation_trace.jsonl.xz --policy arc --blocks 5000");
    hits->callback([args, exit_code] { *exit_code = run(*args); });
}

}  // namespace

void add_trace_command(CLI::App& app, int* exit_code) {
    CLI::App* trace_command = app.add_subcommand(
        "trace", "Read recorded request traces and say what a cache would do with them");
    trace_command->require_subcommand(1);
    add_hits_command(*trace_command, exit_code);
}

}  // namespace kvo::tools

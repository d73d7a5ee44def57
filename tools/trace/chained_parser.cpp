// Mooncake and rtp-llm lines: each request carries its whole list of prefix-chained ids. The parser
// owns the numbers of the ids. One user at a time.
#include "trace/block_fit.hpp"
#include "trace/dense_numbers.hpp"
#include "trace/json_line.hpp"
#include "trace/line_parser.hpp"

namespace kvo::trace {
namespace {

struct field_names {
    const char* time;
    const char* input;
    const char* output;
    const char* ids;
};

class chained_parser final : public line_parser {
public:
    chained_parser(const field_names& names, last_block rule, uint32_t block_tokens,
                   const request_sink& sink)
        : names_(names), fit_(rule), block_tokens_(block_tokens), sink_(sink) {}

    std::optional<fault> line(std::string_view text, uint64_t line_number) override {
        if (auto why = parse(text)) {
            // After a misfit the other lines are read for their lengths only; where they cannot be
            // read, the misfit is still what the user must hear about.
            return misfit_.line_number != 0 ? misfit() : fault{*why};
        }
        fit_.narrow(ids_->size(), request_.input_tokens);
        if (misfit_.line_number != 0) return std::nullopt;
        if (ids_->size() != fit_.ids_for(request_.input_tokens, block_tokens_)) {
            misfit_.line_number = line_number;
            misfit_.reason = std::to_string(ids_->size()) + " ids for " +
                             std::to_string(request_.input_tokens) + " tokens; ";
            return std::nullopt;
        }
        if (auto why = number_ids()) return fault{*why};
        sink_(request_);
        return std::nullopt;
    }

    std::optional<fault> finish() override {
        return misfit_.line_number != 0 ? std::optional(misfit()) : std::nullopt;
    }

    uint32_t unique_blocks() const override { return numbers_.count(); }

private:
    reason parse(std::string_view text) {
        if (auto why = parse_object(text, &object_)) return why;
        if (!object_.contains(names_.ids)) {
            return "no block ids; stats only: the request has no " + std::string(names_.ids) +
                   ", so nothing can be said about reuse";
        }
        if (auto why = get_time(object_, names_.time, &request_.timestamp_ms)) return why;
        if (auto why = clock_.advance(request_.timestamp_ms, shown(object_[names_.time])))
            return why;
        if (auto why = get_count(object_, names_.input, &request_.input_tokens)) return why;
        if (auto why = get_optional_count(object_, names_.output, &request_.output_tokens)) {
            return why;
        }
        if (auto why = get_array(object_, names_.ids, &ids_)) return why;
        if (ids_->size() > kIdsPerRequestMax) return "more than 4194304 block ids in one request";
        return std::nullopt;
    }

    reason number_ids() {
        request_.ids.clear();
        for (const json& id : *ids_) {
            uint64_t key = 0;
            uint32_t number = 0;
            if (auto why = id_of(id, &key)) return why;
            if (!numbers_.number_of(key, &number)) return kTooManyUnique;
            request_.ids.push_back(number);
        }
        return std::nullopt;
    }

    fault misfit() const {
        return {misfit_.reason + fit_.advice() + " (blocks of " + std::to_string(block_tokens_) +
                    " tokens assumed; give the file's own with --block-tokens)",
                misfit_.line_number};
    }

    field_names names_;
    block_fit fit_;
    uint32_t block_tokens_;
    const request_sink& sink_;
    clock_check clock_;
    dense_numbers<uint64_t> numbers_;
    fault misfit_;  // the first line that does not fit block_tokens_
    json object_;
    const json* ids_ = nullptr;
    request request_;
};

}  // namespace

std::unique_ptr<line_parser> make_chained_parser(const read_options& options,
                                                 const request_sink& sink) {
    if (options.kind == format::rtpllm) {
        return std::make_unique<chained_parser>(field_names{"ts", "il", "ol", "bh"},
                                                last_block::dropped, options.block_tokens, sink);
    }
    return std::make_unique<chained_parser>(
        field_names{"timestamp", "input_length", "output_length", "hash_ids"}, last_block::counted,
        options.block_tokens, sink);
}

}  // namespace kvo::trace

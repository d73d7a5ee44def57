#include "serve/schedule.hpp"

#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace engine {

namespace {

constexpr uint64_t kTailIds = uint64_t{1} << 40;  // ids that no trace uses, for the unshared tails

uint64_t mix(uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

// Trace blocks, then a few tokens of its own, as the partial last block of a real prompt.
std::vector<uint32_t> prompt_of_blocks(const nlohmann::json& blocks, uint64_t request_number,
                                       uint32_t n_vocab, uint32_t block_tokens) {
    std::vector<uint32_t> prompt;
    for (const auto& id : blocks) {
        append(prompt, tokens_of_block(id.get<uint64_t>(), block_tokens, n_vocab));
    }
    const uint32_t tail = 1 + static_cast<uint32_t>(request_number % (block_tokens - 1));
    append(prompt, tokens_of_block(kTailIds + request_number, tail, n_vocab));
    return prompt;
}

// Texts by number, one after the other. A small vocabulary (random weights) folds the token ids.
std::vector<uint32_t> prompt_of_texts(const nlohmann::json& parts, const nlohmann::json& texts,
                                      uint32_t n_vocab) {
    std::vector<uint32_t> prompt;
    for (const auto& part : parts) {
        for (const auto& token : texts.at(part.get<size_t>())) {
            prompt.push_back(token.get<uint32_t>() % n_vocab);
        }
    }
    return prompt;
}

request_spec read_request(const nlohmann::json& row, const nlohmann::json& file,
                          uint64_t request_number, uint32_t n_vocab, uint32_t block_tokens) {
    request_spec r;
    if (row.contains("blocks")) {
        r.prompt = prompt_of_blocks(row.at("blocks"), request_number, n_vocab, block_tokens);
    } else {
        r.prompt = prompt_of_texts(row.at("parts"), file.at("texts"), n_vocab);
        r.stop_at_end = true;
    }
    r.max_answer = row.at("answer").get<uint32_t>();
    r.question = row.value("question", "");
    if (r.prompt.empty() || r.max_answer == 0) throw std::runtime_error("empty prompt or answer");
    return r;
}

}  // namespace

size_t schedule::n_requests() const {
    size_t n = 0;
    for (const auto& user : users) n += user.size();
    return n;
}

std::vector<uint32_t> tokens_of_block(uint64_t id, uint32_t n_tokens, uint32_t n_vocab) {
    std::vector<uint32_t> tokens(n_tokens);
    for (uint32_t i = 0; i < n_tokens; ++i) {
        tokens[i] = static_cast<uint32_t>(mix(mix(id) + i) % n_vocab);
    }
    return tokens;
}

bool read_schedule(const std::string& path, uint32_t n_vocab, uint32_t block_tokens, schedule* out,
                   std::string* error) {
    std::ifstream in(path);
    if (!in) {
        *error = fmt::format("{}: cannot be opened", path);
        return false;
    }
    uint64_t request_number = 0;
    try {
        const auto file = nlohmann::json::parse(in);
        schedule result;
        result.name = file.at("name").get<std::string>();
        for (const auto& user : file.at("users")) {
            auto& requests = result.users.emplace_back();
            for (const auto& row : user) {
                requests.push_back(read_request(row, file, request_number, n_vocab, block_tokens));
                ++request_number;
            }
        }
        *out = std::move(result);
        return true;
    } catch (const std::exception& e) {
        *error = fmt::format("{}: request {}: {}", path, request_number, e.what());
        return false;
    }
}

}  // namespace engine

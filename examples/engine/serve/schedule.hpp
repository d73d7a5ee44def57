// A request schedule: users who each send one request after the other. Read from a small JSON file
// (examples/data/README.md describes it) and turned into tokens for a vocabulary. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace engine {

struct request_spec {
    std::vector<uint32_t> prompt;
    uint32_t max_answer = 1;
    bool stop_at_end = false;  // the answer may end early, at the end-of-text token
    std::string question;      // shown with the answer; "" for trace requests
};

struct schedule {
    std::string name;
    std::vector<std::vector<request_spec>> users;
    size_t n_requests() const;
};

// Reads the file. false: *error says file, place and reason. n_vocab: tokens are below it.
bool read_schedule(const std::string& path, uint32_t n_vocab, uint32_t block_tokens, schedule* out,
                   std::string* error);

// The tokens that stand for block `id` of a trace: equal id, equal tokens.
std::vector<uint32_t> tokens_of_block(uint64_t id, uint32_t n_tokens, uint32_t n_vocab);

}  // namespace engine

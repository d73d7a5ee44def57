// The vocabulary of a GGUF file with byte-level BPE ("gpt2"): text to tokens and back. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/gguf.hpp"

namespace engine {

class vocabulary {
public:
    // null with *error when the file has no vocabulary of this kind.
    static std::unique_ptr<vocabulary> load(const gguf_file& file, std::string* error);

    // Special tokens such as <|im_start|> are recognised when written out; text between is merged by BPE.
    std::vector<uint32_t> encode(std::string_view text) const;
    // Special tokens are left out.
    std::string decode(std::span<const uint32_t> tokens) const;
    uint32_t end_token() const { return end_token_; }

private:
    void encode_plain(std::string_view text, std::vector<uint32_t>* out) const;
    void encode_word(std::string_view word, std::vector<uint32_t>* out) const;

    std::vector<std::string> pieces_;  // as bytes; "" for special tokens
    std::unordered_map<std::string, uint32_t> ids_;      // by bytes
    std::unordered_map<std::string, uint32_t> special_;  // by name
    std::unordered_map<std::string, uint32_t> ranks_;    // "left\0right" in bytes
    uint32_t end_token_ = UINT32_MAX;
};

// The turns of a conversation in the form SmolLM2-Instruct was trained on.
std::string chat_prompt(std::string_view system, std::string_view user);

}  // namespace engine

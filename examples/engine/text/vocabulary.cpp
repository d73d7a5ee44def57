#include "text/vocabulary.hpp"

#include <fmt/core.h>

namespace engine {

namespace {

constexpr uint32_t kControl = 3;  // token_type of special tokens

// GPT-2 writes bytes as printable characters: most stand for themselves, the others follow from U+0100 on.
std::unordered_map<uint32_t, uint8_t> byte_of_character() {
    std::unordered_map<uint32_t, uint8_t> map;
    uint32_t other = 256;
    for (uint32_t b = 0; b < 256; ++b) {
        const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        map[prints ? b : other++] = static_cast<uint8_t>(b);
    }
    return map;
}

// The bytes behind a piece as it is written in the file (UTF-8 of up to two bytes a character).
bool to_bytes(std::string_view written, const std::unordered_map<uint32_t, uint8_t>& map, std::string* out) {
    for (size_t i = 0; i < written.size();) {
        const auto first = static_cast<uint8_t>(written[i]);
        uint32_t character = first;
        if (first >= 0x80) {
            if ((first & 0xE0) != 0xC0 || i + 1 >= written.size()) return false;
            character = (first & 31u) << 6 | (static_cast<uint8_t>(written[i + 1]) & 63u);
            ++i;
        }
        ++i;
        const auto it = map.find(character);
        if (it == map.end()) return false;
        out->push_back(static_cast<char>(it->second));
    }
    return true;
}

std::string pair_key(std::string_view left, std::string_view right) {
    std::string key(left);
    key.push_back('\0');
    key.append(right);
    return key;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// End of the word that begins at `at`: letters, one digit, punctuation, each with a leading space if there is
// one; or white space, whose last space goes to the word behind it. Bytes of other scripts count as letters.
size_t word_end(std::string_view text, size_t at) {
    static constexpr std::string_view endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (std::string_view e : endings) {
        if (text.substr(at, e.size()) == e) return at + e.size();
    }
    const size_t begin = at + (text[at] == ' ' && at + 1 < text.size() && !is_space(text[at + 1]) ? 1 : 0);
    size_t i = begin;
    if (is_digit(text[i])) return begin == at ? i + 1 : begin;  // digits stand alone, without the space
    if (is_letter(text[i])) {
        while (i < text.size() && is_letter(text[i])) ++i;
        return i;
    }
    if (!is_space(text[i])) {
        while (i < text.size() && !is_letter(text[i]) && !is_digit(text[i]) && !is_space(text[i])) ++i;
        return i;
    }
    while (i < text.size() && is_space(text[i])) ++i;
    return i < text.size() && i - at > 1 ? i - 1 : i;
}

}  // namespace

std::unique_ptr<vocabulary> vocabulary::load(const gguf_file& file, std::string* error) {
    const gguf_value* kind = file.find("tokenizer.ggml.model");
    const gguf_value* tokens = file.find("tokenizer.ggml.tokens");
    const gguf_value* merges = file.find("tokenizer.ggml.merges");
    const gguf_value* types = file.find("tokenizer.ggml.token_type");
    std::vector<std::string_view> written, pairs;
    const bool is_gpt2 = kind != nullptr && std::holds_alternative<std::string>(*kind) &&
                         std::get<std::string>(*kind) == "gpt2";
    if (!is_gpt2 || tokens == nullptr || !gguf_file::strings(*tokens, &written) || merges == nullptr ||
        !gguf_file::strings(*merges, &pairs)) {
        *error = fmt::format("{}: no byte-level BPE vocabulary (tokenizer.ggml.model = gpt2)", file.path());
        return nullptr;
    }
    auto v = std::make_unique<vocabulary>();
    const auto map = byte_of_character();
    const auto* type_array = types == nullptr ? nullptr : std::get_if<gguf_array>(types);
    for (uint32_t i = 0; i < written.size(); ++i) {
        const bool is_special = type_array != nullptr && i * 4 + 4 <= type_array->bytes.size() &&
                                type_array->bytes[i * 4] == kControl;
        std::string bytes;
        if (is_special) {
            if (!written[i].empty()) v->special_.emplace(written[i], i);
        } else if (to_bytes(written[i], map, &bytes)) {
            v->ids_.emplace(bytes, i);
        }
        v->pieces_.push_back(std::move(bytes));
    }
    for (uint32_t rank = 0; rank < pairs.size(); ++rank) {
        const size_t space = pairs[rank].find(' ');
        if (space == std::string_view::npos) continue;
        std::string left, right;
        if (!to_bytes(pairs[rank].substr(0, space), map, &left)) continue;
        if (!to_bytes(pairs[rank].substr(space + 1), map, &right)) continue;
        v->ranks_.emplace(pair_key(left, right), rank);
    }
    const gguf_value* end = file.find("tokenizer.ggml.eos_token_id");
    if (end != nullptr && std::holds_alternative<uint64_t>(*end)) {
        v->end_token_ = static_cast<uint32_t>(std::get<uint64_t>(*end));
    }
    return v;
}

void vocabulary::encode_word(std::string_view word, std::vector<uint32_t>* out) const {
    std::vector<std::string> parts;
    for (char c : word) parts.emplace_back(1, c);
    while (parts.size() > 1) {  // words are short: look for the lowest rank again each time
        size_t best = parts.size();
        uint32_t best_rank = UINT32_MAX;
        for (size_t i = 0; i + 1 < parts.size(); ++i) {
            const auto it = ranks_.find(pair_key(parts[i], parts[i + 1]));
            if (it != ranks_.end() && it->second < best_rank) {
                best_rank = it->second;
                best = i;
            }
        }
        if (best == parts.size()) break;
        parts[best] += parts[best + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    for (const auto& part : parts) {
        const auto it = ids_.find(part);
        if (it != ids_.end()) out->push_back(it->second);
    }
}

void vocabulary::encode_plain(std::string_view text, std::vector<uint32_t>* out) const {
    for (size_t at = 0; at < text.size();) {
        const size_t end = word_end(text, at);
        encode_word(text.substr(at, end - at), out);
        at = end;
    }
}

std::vector<uint32_t> vocabulary::encode(std::string_view text) const {
    std::vector<uint32_t> out;
    while (!text.empty()) {
        size_t first = text.size();
        const std::pair<const std::string, uint32_t>* found = nullptr;
        for (const auto& name : special_) {
            const size_t at = text.find(name.first);
            if (at < first || (at == first && found != nullptr && name.first.size() > found->first.size())) {
                first = at;
                found = &name;
            }
        }
        encode_plain(text.substr(0, first), &out);
        if (found == nullptr) break;
        out.push_back(found->second);
        text.remove_prefix(first + found->first.size());
    }
    return out;
}

std::string vocabulary::decode(std::span<const uint32_t> tokens) const {
    std::string text;
    for (uint32_t token : tokens) {
        if (token < pieces_.size()) text += pieces_[token];
    }
    return text;
}

std::string chat_prompt(std::string_view system, std::string_view user) {
    return fmt::format("<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
                       system, user);
}

}  // namespace engine

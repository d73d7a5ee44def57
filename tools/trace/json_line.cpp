#include "trace/json_line.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace kvo::trace {
namespace {

constexpr size_t kShownBytesMax = 40;

// The word around a parse error: the parser names a position, a reader wants to see what is there.
std::string word_at(std::string_view text, size_t position) {
    constexpr std::string_view ends = ",:[]{} \t";
    size_t begin = std::min(position, text.size());
    while (begin > 0 && ends.find(text[begin - 1]) == std::string_view::npos &&
           position - begin < kShownBytesMax) {
        --begin;
    }
    const size_t end = std::min(text.find_first_of(ends, position), text.size());
    std::string word;
    for (const char c : text.substr(begin, std::min(end - begin, kShownBytesMax))) {
        word += c >= 0x20 && c < 0x7f ? c : '?';
    }
    return word;
}

const json* find(const json& object, const char* name) {
    const auto it = object.find(name);
    return it == object.end() ? nullptr : &*it;
}

std::string missing(const char* name) { return std::string(name) + " is missing"; }

}  // namespace

reason parse_object(std::string_view text, json* out) {
    try {
        *out = json::parse(text);
    } catch (const json::parse_error& e) {
        const size_t position = e.byte > 0 ? e.byte - 1 : 0;
        if (position >= text.size()) return "not valid JSON: the line ends too early";
        return "not valid JSON at column " + std::to_string(e.byte) + ", near '" +
               word_at(text, position) + "'";
    } catch (const json::exception&) {
        return "not valid JSON: a number is out of range";
    }
    if (!out->is_object()) return "not a JSON object";
    return std::nullopt;
}

std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
    return text;
}

reason get_count(const json& object, const char* name, uint64_t* out) {
    const json* value = find(object, name);
    if (value == nullptr) return missing(name);
    if (!value->is_number_unsigned() ||
        value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
        return std::string(name) + " is " + shown(*value) +
               ", not a whole number from 0 to 2^63 - 1";
    }
    *out = value->get<uint64_t>();
    return std::nullopt;
}

reason get_optional_count(const json& object, const char* name, uint64_t* out) {
    *out = 0;
    return find(object, name) == nullptr ? std::nullopt : get_count(object, name, out);
}

reason get_time(const json& object, const char* name, double* out) {
    const json* value = find(object, name);
    if (value == nullptr) return missing(name);
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < 0) {
        return std::string(name) + " is " + shown(*value) + ", not a time of 0 or later";
    }
    *out = value->get<double>();
    return std::nullopt;
}

reason get_array(const json& object, const char* name, const json** out) {
    const json* value = find(object, name);
    if (value == nullptr) return missing(name);
    if (!value->is_array()) return std::string(name) + " is " + shown(*value) + ", not a list";
    *out = value;
    return std::nullopt;
}

reason id_of(const json& value, uint64_t* out) {
    if (value.is_number_unsigned()) {
        *out = value.get<uint64_t>();
        return std::nullopt;
    }
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        const char* end = text.data() + text.size();
        const auto [stop, fault] = std::from_chars(text.data(), end, *out);
        if (fault == std::errc{} && stop == end) return std::nullopt;
    }
    return "block id " + shown(value) + " is not a whole number from 0 to 2^64 - 1";
}

}  // namespace kvo::trace

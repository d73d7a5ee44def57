// One line of a JSON trace and checked access to its fields. Each getter returns the reason why the
// field cannot be used, or nothing; the reason shows the value found. Any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kvo::trace {

using json = nlohmann::json;
using reason = std::optional<std::string>;

// The line must be one JSON object.
reason parse_object(std::string_view text, json* out);

// A value of the file for an error text, cut when long.
std::string shown(const json& value);

// A whole number from 0 to 2^63 - 1.
reason get_count(const json& object, const char* name, uint64_t* out);
// The same, but 0 when the field is not there.
reason get_optional_count(const json& object, const char* name, uint64_t* out);
// A finite number that is not negative.
reason get_time(const json& object, const char* name, double* out);
reason get_array(const json& object, const char* name, const json** out);

// A whole number from 0 to 2^64 - 1, or a string of decimal digits that is one.
reason id_of(const json& value, uint64_t* out);

}  // namespace kvo::trace

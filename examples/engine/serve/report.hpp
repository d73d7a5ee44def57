// What the demo shows of its runs: a table for people, JSON for programs, and the verdict whether all runs
// gave the same answers. Pure functions over results.
#pragma once

#include <string>
#include <vector>

#include "serve/run.hpp"

namespace engine {

// "" when every run answered every request with the same tokens; else where the first difference is.
std::string first_difference(const std::vector<run_result>& runs);

std::string table_text(const std::string& schedule_name, const std::vector<run_result>& runs);
std::string json_text(const std::string& model_name, const std::string& schedule_name,
                      const std::vector<run_result>& runs);

// The smallest value that at least `share` (0..1) of the values do not exceed.
double percentile(std::vector<double> values, double share);

}  // namespace engine

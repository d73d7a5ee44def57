#include "serve/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

namespace engine {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

double gb_per_s(uint64_t bytes, uint64_t ns) {
    return ns == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(ns);
}
double mib(uint64_t bytes) { return static_cast<double>(bytes) / kMiB; }
double max_of(const std::vector<double>& v) {
    return v.empty() ? 0.0 : *std::max_element(v.begin(), v.end());
}

struct row {
    const char* label;
    std::function<std::string(const run_result&)> value;
};

std::string tail_of(const run_result& r) {
    return r.ttft_ms.size() < 100 ? "-" : fmt::format("{:.0f}", percentile(r.ttft_ms, 0.99));
}

const std::vector<row>& rows() {
    static const std::vector<row> all = {
        {"answers completed", [](const run_result& r) { return fmt::format("{}", r.answers.size()); }},
        {"prompt tokens", [](const run_result& r) { return fmt::format("{}", r.prompt_tokens); }},
        {"  computed (prefill)",
         [](const run_result& r) { return fmt::format("{}", r.counts.prefilled_tokens); }},
        {"  reused from device",
         [](const run_result& r) { return fmt::format("{}", r.counts.reused_device_tokens); }},
        {"  reused from host",
         [](const run_result& r) { return fmt::format("{}", r.counts.reused_host_tokens); }},
        {"TTFT p50 (ms)",
         [](const run_result& r) { return fmt::format("{:.0f}", percentile(r.ttft_ms, 0.5)); }},
        {"TTFT p95 (ms)",
         [](const run_result& r) { return fmt::format("{:.0f}", percentile(r.ttft_ms, 0.95)); }},
        {"TTFT p99 (ms)", tail_of},
        {"TTFT max (ms)", [](const run_result& r) { return fmt::format("{:.0f}", max_of(r.ttft_ms)); }},
        {"total time (s)", [](const run_result& r) { return fmt::format("{:.1f}", r.total_s); }},
        {"preemptions", [](const run_result& r) { return fmt::format("{}", r.counts.preemptions); }},
        {"host -> device (MiB)",
         [](const run_result& r) { return fmt::format("{:.0f}", mib(r.tier.load_bytes)); }},
        {"  rate while loading (GB/s)",
         [](const run_result& r) {
             return fmt::format("{:.1f}", gb_per_s(r.tier.load_bytes, r.tier.load_ns));
         }},
        {"device -> host (MiB)",
         [](const run_result& r) { return fmt::format("{:.0f}", mib(r.tier.store_bytes)); }},
        {"  rate while storing (GB/s)",
         [](const run_result& r) {
             return fmt::format("{:.1f}", gb_per_s(r.tier.store_bytes, r.tier.store_ns));
         }},
        {"host blocks stored",
         [](const run_result& r) { return fmt::format("{}", r.tier.stored_blocks); }},
        {"  dropped before first reuse",
         [](const run_result& r) { return fmt::format("{}", r.tier.evicted_before_reuse); }},
        {"host budget used (MiB)",
         [](const run_result& r) {
             return fmt::format("{:.0f}/{:.0f}", mib(r.tier.resident_bytes), mib(r.tier.budget_bytes));
         }},
        {"resident before (MiB)",
         [](const run_result& r) { return fmt::format("{:.0f}", mib(r.rss_before)); }},
        {"resident peak (MiB)", [](const run_result& r) { return fmt::format("{:.0f}", mib(r.rss_peak)); }},
        {"resident after (MiB)",
         [](const run_result& r) { return fmt::format("{:.0f}", mib(r.rss_after)); }},
        {"library CPU (% of all CPU)",
         [](const run_result& r) {
             const auto ns = static_cast<double>(r.tier.cpu_ns_threads + r.tier.cpu_ns_calls);
             return fmt::format("{:.2f}", r.cpu_s > 0 ? ns * 1e-7 / r.cpu_s : 0.0);
         }},
    };
    return all;
}

nlohmann::json run_json(const run_result& r) {
    nlohmann::json ttft = {{"p50", percentile(r.ttft_ms, 0.5)},
                           {"p95", percentile(r.ttft_ms, 0.95)},
                           {"max", max_of(r.ttft_ms)}};
    if (r.ttft_ms.size() >= 100) ttft["p99"] = percentile(r.ttft_ms, 0.99);
    return {{"run", r.name},
            {"answers", r.answers.size()},
            {"prompt_tokens", r.prompt_tokens},
            {"prefilled_tokens", r.counts.prefilled_tokens},
            {"decoded_tokens", r.counts.decoded_tokens},
            {"reused_device_tokens", r.counts.reused_device_tokens},
            {"reused_host_tokens", r.counts.reused_host_tokens},
            {"preemptions", r.counts.preemptions},
            {"ttft_ms", ttft},
            {"total_s", r.total_s},
            {"cpu_s", r.cpu_s},
            {"load_bytes", r.tier.load_bytes},
            {"load_gb_per_s", gb_per_s(r.tier.load_bytes, r.tier.load_ns)},
            {"store_bytes", r.tier.store_bytes},
            {"store_gb_per_s", gb_per_s(r.tier.store_bytes, r.tier.store_ns)},
            {"stored_blocks", r.tier.stored_blocks},
            {"evicted_blocks", r.tier.evicted_blocks},
            {"evicted_before_reuse", r.tier.evicted_before_reuse},
            {"budget_bytes", r.tier.budget_bytes},
            {"budget_used_bytes", r.tier.resident_bytes},
            {"rss_before", r.rss_before},
            {"rss_peak", r.rss_peak},
            {"rss_after", r.rss_after},
            {"library_cpu_ns", r.tier.cpu_ns_threads + r.tier.cpu_ns_calls}};
}

}  // namespace

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    const auto index = static_cast<size_t>(std::max(1.0, rank)) - 1;
    return values[std::min(index, values.size() - 1)];
}

std::string first_difference(const std::vector<run_result>& runs) {
    for (const run_result& r : runs) {
        const run_result& base = runs.front();
        if (r.answers.size() != base.answers.size()) {
            return fmt::format("'{}' gave {} answers, '{}' gave {}", r.name, r.answers.size(),
                               base.name, base.answers.size());
        }
        for (size_t i = 0; i < r.answers.size(); ++i) {
            if (r.answers[i] == base.answers[i]) continue;
            const auto [a, b] = std::mismatch(r.answers[i].begin(), r.answers[i].end(),
                                              base.answers[i].begin(), base.answers[i].end());
            return fmt::format("request {}: '{}' and '{}' differ from answer token {} on", i, r.name,
                               base.name, a - r.answers[i].begin());
        }
    }
    return "";
}

std::string table_text(const std::string& schedule_name, const std::vector<run_result>& runs) {
    std::string text = fmt::format("\n{:<30}", schedule_name);
    for (const run_result& r : runs) text += fmt::format("{:>18}", r.name);
    text += "\n" + std::string(30 + 18 * runs.size(), '-') + "\n";
    for (const row& line : rows()) {
        text += fmt::format("{:<30}", line.label);
        for (const run_result& r : runs) text += fmt::format("{:>18}", line.value(r));
        text += "\n";
    }
    return text;
}

std::string json_text(const std::string& model_name, const std::string& schedule_name,
                      const std::vector<run_result>& runs) {
    nlohmann::json out = {{"model", model_name}, {"schedule", schedule_name}};
    for (const run_result& r : runs) out["runs"].push_back(run_json(r));
    const std::string difference = first_difference(runs);
    out["answers_equal"] = difference.empty();
    if (!difference.empty()) out["difference"] = difference;
    return out.dump(2);
}

}  // namespace engine

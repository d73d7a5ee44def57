#include "trace/delta.hpp"

#include <limits>

#include "trace/line_parser.hpp"

namespace kvo::trace {
namespace {

reason read_run(const json& run, uint64_t* first, uint64_t* count) {
    if (!run.is_array() || run.size() != 2 || !run[0].is_number_unsigned() ||
        !run[1].is_number_unsigned()) {
        return "run " + shown(run) + " in a is not [first, count]";
    }
    *first = run[0].get<uint64_t>();
    *count = run[1].get<uint64_t>();
    if (*count == 0 || *count > std::numeric_limits<uint64_t>::max() - *first) {
        return "run " + shown(run) + " in a is empty or passes the largest id";
    }
    return std::nullopt;
}

}  // namespace

reason apply_delta(const json& object, uint64_t expected, const id_numbering& numbering,
                   std::vector<uint32_t>* list) {
    uint64_t kept = 0;
    const json* runs = nullptr;
    if (auto why = get_count(object, "k", &kept)) return why;
    if (auto why = get_array(object, "a", &runs)) return why;
    if (kept > list->size()) {
        return "k is " + std::to_string(kept) + ", but the list before it has " +
               std::to_string(list->size()) + " ids";
    }
    if (expected > kIdsPerRequestMax) {
        return std::to_string(expected) + " block ids in one request, more than 4194304";
    }
    uint64_t total = kept;
    uint64_t first = 0;
    uint64_t count = 0;
    for (const json& run : *runs) {
        if (auto why = read_run(run, &first, &count)) return why;
        total = count > expected ? expected + 1 : total + count;
        if (total > expected) break;
    }
    if (total != expected) {
        return (total > expected ? "more than " : std::to_string(total) + " ids, not ") +
               std::to_string(expected) + " ids that the length asks for";
    }
    list->resize(kept);
    list->reserve(expected);
    for (const json& run : *runs) {
        if (auto why = read_run(run, &first, &count)) return why;
        for (uint64_t id = first; id < first + count; ++id) {
            uint32_t number = 0;
            if (auto why = numbering(id, &number)) return why;
            list->push_back(number);
        }
    }
    return std::nullopt;
}

}  // namespace kvo::trace

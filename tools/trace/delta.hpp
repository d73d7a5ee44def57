// The delta form of a block id list: the first k ids of the list before it, then runs of
// consecutive ids. Any thread.
#pragma once

#include <functional>
#include <vector>

#include "trace/json_line.hpp"

namespace kvo::trace {

// Gives an id of the file its number; the reason when it cannot.
using id_numbering = std::function<reason(uint64_t id, uint32_t* number)>;

// Turns *list, the list of the request before, into that of this one. `expected` is the length that
// the request's token count asks for; it is checked before anything is built.
reason apply_delta(const json& object, uint64_t expected, const id_numbering& numbering,
                   std::vector<uint32_t>* list);

}  // namespace kvo::trace

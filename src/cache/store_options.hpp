// Checks the options that kvo_store and kvo_reserve share. Pure function.
#pragma once

#include "base/status.hpp"
#include "kvoffload/kvo_block.h"

namespace kvo {

status check_store_options(const kvo_store_options_t& options);

}  // namespace kvo

// All of the C++ interface: a thin, header-only skin over the C interface, C++17 and later. Handles are
// move-only, errors are values (define KVO_EXCEPTIONS for result::value(), which throws).
#pragma once

#include "kvoffload/cache.hpp"
#include "kvoffload/kvo_host.h"
#include "kvoffload/reservation.hpp"
#include "kvoffload/sequence.hpp"
#include "kvoffload/status.hpp"
#include "kvoffload/view.hpp"

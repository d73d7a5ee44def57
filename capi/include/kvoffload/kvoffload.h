/* kvoffload: keeps reusable KV-cache blocks of an LLM inference engine in host memory and copies them
 * back instead of recomputing them. The whole C interface; each part may also be included alone. */
#ifndef KVOFFLOAD_H
#define KVOFFLOAD_H

#include "kvo_base.h"
#include "kvo_cache.h"
#include "kvo_block.h"
#include "kvo_seq.h"
#include "kvo_stats.h"
#include "kvo_host.h"

#endif

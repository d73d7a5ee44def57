// Requests of a real trace through store and match give the reference hit counts. ARC is counted in
// the textbook order, one key at a time: a whole chain keeps its own blocks while it is stored,
// which the textbook does not, and ARC then counts differently (mostly higher).
#include "prefix_replay.hpp"

using namespace kvo::test;

TEST_CASE("requests of the mini-swe agent trace hit as often as the reference, to the last hit") {
    check_prefix_counts("miniswe",
                        std::string(KVO_TEST_DATA_DIR) + "/lmcache_agent_miniswe_delta.jsonl.xz");
}

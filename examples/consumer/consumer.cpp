// The smallest program that needs headers and library of an installed kvoffload. Also built by hand with
//   c++ -std=c++17 consumer.cpp $(pkg-config --cflags --libs kvoffload)
#include <cstdio>
#include <kvoffload/kvoffload.hpp>

int main() {
    kvo_config_t config = kvoffload::default_config();
    config.budget_bytes = 16u << 20;
    config.block_tokens = 16;
    auto cache = kvoffload::cache::create(config);
    std::printf("kvoffload %u: create %s\n", kvo_version(), cache ? "works" : kvo_last_error());
    return cache ? 0 : 1;
}

// Writes the accesses of a trace as little-endian unsigned 64-bit numbers, so that a script can
// compare their SHA-256 with a published one. Single-threaded.
#include <cstdio>
#include <cstdlib>

#include "trace/trace.hpp"

int main(int argc, char** argv) {
    kvo::trace::sequence sequence;
    kvo::trace::read_options options;
    if (argc > 2) options.block_tokens = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
    const auto fault = kvo::trace::read_sequence(argc > 1 ? argv[1] : "-", options, &sequence);
    if (fault) {
        std::fprintf(stderr, "%s\n", fault->text.c_str());
        return 2;
    }
    for (const uint64_t id : sequence.ids) {
        for (int shift = 0; shift < 64; shift += 8) {
            std::putchar(static_cast<int>((id >> shift) & 0xff));
        }
    }
    std::fprintf(stderr, "accesses %zu unique %u requests %zu\n", sequence.ids.size(),
                 sequence.info.unique_blocks, sequence.requests.size());
    return std::fflush(stdout) == 0 ? 0 : 1;
}

// Header, linker map and shared object name the same functions, and the shared object needs nothing beyond
// libc, libm, the loader, libstdc++ and libgcc_s. Reads the files with nm and readelf.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <kvoffload/kvoffload.h>
#include <regex>
#include <set>
#include <string>

#ifndef KVO_SOURCE_DIR
#error "KVO_SOURCE_DIR is the root of the source tree"
#endif

namespace {

using names = std::set<std::string>;
const std::string kRoot = KVO_SOURCE_DIR;
int failures = 0;

std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}
names all_matches(const std::string& text, const char* pattern) {
    names found;
    const std::regex re(pattern);
    for (std::sregex_iterator it(text.begin(), text.end(), re), end; it != end; ++it) found.insert((*it)[1]);
    return found;
}
std::string output_of(const std::string& command) {
    std::string text;
    if (FILE* pipe = popen(command.c_str(), "r")) {
        char line[512];
        while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
        pclose(pipe);
    }
    return text;
}
void same(const char* what, const names& a, const names& b) {
    for (const auto& n : a) {
        if (b.count(n) == 0) ++failures, std::printf("%s: only on the left: %s\n", what, n.c_str());
    }
    for (const auto& n : b) {
        if (a.count(n) == 0) ++failures, std::printf("%s: only on the right: %s\n", what, n.c_str());
    }
}

}  // namespace

int main() {
    names header;
    for (const char* part : {"base", "cache", "block", "seq", "stats", "host"}) {
        const std::string text = text_of(kRoot + "/capi/include/kvoffload/kvo_" + part + ".h");
        header.merge(all_matches(text, R"(KVO_API [^;(]*?\b(kvo_\w+)\()"));
    }
    const names map = all_matches(text_of(kRoot + "/capi/kvoffload.map"), R"(\b(kvo_\w+);)");
    Dl_info info{};
    if (header.size() < 50 || dladdr(reinterpret_cast<void*>(&kvo_version), &info) == 0) return std::puts("nothing found"), 1;
    const std::string so = info.dli_fname;
    same("header and map", header, map);
    const std::string symbols = output_of("nm -D --defined-only " + so);
    same("header and nm -D", header, all_matches(symbols, R"( T (\w+))"));
    for (const auto& other : all_matches(symbols, R"( [^TA] (\w+))")) ++failures, std::printf("exported: %s\n", other.c_str());
    const names allowed{"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
                        "ld-linux-aarch64.so.1", "linux-vdso.so.1"};
    const std::string sections = output_of("readelf -d " + so);
    if (std::regex_search(sections, std::regex("lib(asan|tsan|ubsan)"))) return 77;  // sanitized: not what is shipped
    for (const auto& needed : all_matches(sections, R"(NEEDED.*\[(.*)\])")) {
        if (allowed.count(needed) == 0) ++failures, std::printf("needs %s\n", needed.c_str());
    }
    std::printf("%zu functions, %d failures\n", header.size(), failures);
    return failures != 0;
}

// The kvoffload program: parses the command line and maps every outcome to an exit code.
// Single-threaded.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "commands/commands.hpp"
#include "kvoffload/kvoffload.h"

namespace kvo::tools {

int complain(int code, const std::string& text) {
    fmt::print(stderr, "kvoffload: {}\n", text);
    return code;
}

int print_result(const std::string& text) {
    if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return kExitOk;
    return complain(kExitFailed,
                    fmt::format("the output cannot be written: {}", std::strerror(errno)));
}

}  // namespace kvo::tools

int main(int argc, char** argv) {
    using namespace kvo::tools;
    CLI::App app{
        "Tools around kvoffload, a library that keeps KV-cache blocks of LLM inference in host "
        "memory.",
        "kvoffload"};
    app.require_subcommand(1);
    app.set_version_flag("--version", fmt::format("kvoffload {}.{}.{}", KVO_VERSION_MAJOR,
                                                  KVO_VERSION_MINOR, KVO_VERSION_PATCH));
    app.footer(
        "Exit codes: 0 done, 1 the command failed, 2 wrong arguments or unusable input.\n"
        "'kvoffload COMMAND --help' explains a command.");
    int exit_code = kExitOk;
    try {
        add_trace_command(app, &exit_code);
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? kExitOk : kExitInput;
    } catch (const std::bad_alloc&) {
        return complain(kExitFailed, "out of memory");
    } catch (const std::exception& e) {
        return complain(kExitFailed, e.what());
    }
    return exit_code;
}

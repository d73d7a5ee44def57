// The commands of the kvoffload program. Each adds itself to the parser and, when it is the one
// asked for, leaves its exit code. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>

namespace kvo::tools {

// Exit codes of every command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the command itself failed: no memory, output not written
inline constexpr int kExitInput = 2;   // wrong arguments, or a file that cannot be used

// Prints "kvoffload: text" to standard error and returns `code`.
int complain(int code, const std::string& text);
// Writes to standard output; kExitFailed when that does not take it.
int print_result(const std::string& text);

void add_trace_command(CLI::App& app, int* exit_code);

}  // namespace kvo::tools

// Human text, to standard error. Standard output belongs to results (`--json`).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace skein::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// Writes one line: control characters, line breaks among them, as visible_text.h shows them, since
// lines quote names from outside. The logging library and its headers stay in log.cc.
void write(Level level, std::string_view line);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

// Sends log lines to standard error, in colour on a terminal if may_colour(), and to `file` if it
// is not empty. A file that takes no more, as on a full disk, is reported once, and no reason to
// end.
// main calls it, and a command that has a file again.
void start(const std::string& file = "");

// Writes an error to the log file only, when another process reports it on the terminal.
void error_to_file(const std::string& text);

// Writes a line to the log file only, which people on the terminal need not see. Of a process
// without one standard error is the log: its supervisor has sent it to a file.
void info_to_file(const std::string& text);

// The same at debug level, which standard error does not show beside a file.
void debug_to_file(const std::string& text);

// Appends an error to the log file of another process. Errors  spdlog's, for the file.
void append_error(const std::string& file, const std::string& text);

// False where the environment variable NO_COLOR is set and not empty (https://no-color.org).
bool may_colour();

// True if standard error is a terminal: only then are lines redrawn or coloured.
bool on_terminal();

}  // namespace skein::log

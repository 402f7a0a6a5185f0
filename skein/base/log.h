// Human text, to standard error. Standard output belongs to results (`--json`).
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace skein::log {

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// Sends log lines to standard error (colour only on a terminal) and, where `file` is not empty, to
// that file as well. Called once by the command; until then spdlog's default logger serves.
void start(const std::string& file = "");

// An error for the log file alone, where somebody else tells it on the terminal.
void error_to_file(const std::string& text);

// Appends an error to a log file that somebody else began. Errors  spdlog's, for the file.
void append_error(const std::string& file, const std::string& text);

// True if standard error is a terminal: only then are lines redrawn or coloured.
bool on_terminal();

}  // namespace skein::log

// How inputs are read: the options that `ingest`, `clean` and `dedup` have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/cli/shared/command.h"
#include "skein/prepare/read/readers.h"

namespace skein {

// Where a command keeps them.
struct ReadingOptions {
  std::string& text_column;
  bool& as_text;
  std::optional<InputFormat>& format;
  std::string& document_separator;
  bool& skip_invalid_lines;
  double& max_invalid_lines;
  InvalidUtf8& invalid_utf8;
  int64_t& max_expansion;
};

// What is referred to must outlive the parsing of the command line.
void add_reading_options(CLI::App& command, const ReadingOptions& options);

// The options as they were given, for another process that reads the same.
std::vector<std::string> reading_words(const ReadingOptions& options);

// The threads of a task of a job array, for bash: those that were asked for, else all of its cores.
std::string threads_of_task(int num_threads);

}  // namespace skein

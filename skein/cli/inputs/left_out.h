// What a command that reads inputs says of those that it did not take, or not at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

struct LeftOut {
  int64_t num_files = 0;     // that hold no text
  int64_t num_lines = 0;     // that are not valid
  int64_t num_repaired = 0;  // documents that are not UTF-8, repaired or left out
  int64_t num_documents = 0;
  const char* documents = "empty";              // what they were
  const std::vector<std::string>& warnings;     // the first of these, one line each
  const std::vector<std::string>& passed_over;  // as in inputs.h
  const std::vector<std::string>& notes;
  std::string first_empty = {};  // document, if any was: its file and record
};

// To standard error; nothing where nothing was left out. Last, how often this process had to ask an
// object store again.
void print_left_out(const LeftOut& left_out);

}  // namespace skein

// Files of one JSON object a line, appended to while a run goes on and read back after anything.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "skein/base/file.h"
#include "skein/base/json.h"

namespace skein {

// Appends lines. Each line is one write() to a file opened with O_APPEND, so that processes may
// share the file and a crash tears at most the last line. What an earlier crash left without an end
// of line is closed first and stays a line of its own, for readers to skip.
// Errors   Error{kIo | kNoSpace} naming the file; the next line starts afresh.
// Threads  one at a time.
class JsonlWriter {
 public:
  explicit JsonlWriter(const fs::path& path);

  // `line` holds one JSON object and no end of line.
  void append(std::string_view line);

 private:
  fs::path path_;
  FileDescriptor file_;
  bool torn_ = false;  // the file does not end with an end of line
};

// Calls `visit` for every line that is a JSON object, in order. Returns how many other lines that
// are not blank there were. A missing file has no lines.
int64_t for_each_json_line(const fs::path& path, const std::function<void(const Json&)>& visit);

}  // namespace skein

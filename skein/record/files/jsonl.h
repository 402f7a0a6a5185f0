// JSON Lines files: appended to during a run, and readable after a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/record/files/patient_file.h"

namespace skein {

// Appends lines. Each line is one write() to a file opened with O_APPEND, so processes may share
// the file and a crash leaves at most the last line incomplete. Such a line from an earlier crash
// is ended first, and readers skip it.
// Errors   as PatientFile: lines that a full disk does not take wait, and follow.
// Threads  one at a time.
class JsonlWriter {
 public:
  explicit JsonlWriter(const fs::path& path);

  // `line`: one JSON object without a line break.
  void append(std::string_view line);
  void finish() { file_.finish(); }

 private:
  PatientFile file_;
};

// Calls `visit` for every line that is a JSON object, in order. Returns the number of other lines
// that are not blank. A missing file has no lines. Only what lies within the last `most_bytes` is
// read.
int64_t for_each_json_line(const fs::path& path, const std::function<void(const Json&)>& visit,
                           size_t most_bytes = std::string_view::npos);

// What is added to such a file while others write it: each call reads on where the last one ended.
// A file that became shorter is another one, and is read from its beginning.
class JsonlTail {
 public:
  explicit JsonlTail(fs::path path, int64_t offset = 0) : path_(std::move(path)), offset_(offset) {}

  // Visits every line that is whole and a JSON object. A missing file has none.
  void read(const std::function<void(const Json&)>& visit);
  // Behind the last line that was visited or passed over.
  int64_t offset() const { return offset_; }

 private:
  fs::path path_;
  int64_t offset_;
};

}  // namespace skein

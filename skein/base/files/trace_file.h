// Writes a trace for Perfetto (ui.perfetto.dev) and chrome://tracing, event by event.
//
// Format   the JSON object format of Chrome's trace events, one event a line
// Memory   constant: events are written to the file as they come
// Errors   Error{kIo | kNoSpace | kNotFound} naming the path; the file is then truncated
// Source   "Trace Event Format", the Chromium project
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "skein/base/files/file.h"

namespace skein {

class TraceFile {
 public:
  // Replaces the file.
  explicit TraceFile(const fs::path& path);

  // Writes one event; `format` gives what stands between its braces.
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    begin_event();
    write(fmt::format(format, std::forward<Args>(args)...));
    end_event();
  }

  void end();

 private:
  void begin_event();
  void end_event();
  void write(std::string_view text) { buffer_.append(text.data(), text.data() + text.size()); }
  void flush();

  fs::path path_;
  FileDescriptor file_;
  fmt::memory_buffer buffer_;
  bool first_ = true;
};

}  // namespace skein

#include "skein/base/files/trace_file.h"

#include <fcntl.h>

#include <cerrno>
#include <span>

#include "skein/base/error.h"

namespace skein {
namespace {
constexpr size_t kFlushBytes = size_t{1} << 18;
}  // namespace

TraceFile::TraceFile(const fs::path& path) : path_(path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int error = errno;
  if (fd < 0) fail(errno_code(error), "cannot open {}: {}", path.string(), errno_text(error));
  file_ = FileDescriptor(fd);
  write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
}

void TraceFile::begin_event() {
  write(first_ ? "\n{" : ",\n{");
  first_ = false;
}

void TraceFile::end_event() {
  write("}");
  if (buffer_.size() >= kFlushBytes) flush();
}

void TraceFile::end() {
  write("\n]}\n");
  flush();
}

void TraceFile::flush() {
  write_all(file_.get(), std::as_bytes(std::span(buffer_.data(), buffer_.size())), path_);
  buffer_.clear();
}

}  // namespace skein

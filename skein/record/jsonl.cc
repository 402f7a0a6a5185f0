#include "skein/record/jsonl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "skein/base/error.h"

namespace skein {

JsonlWriter::JsonlWriter(const fs::path& path) : path_(path) {
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (file_.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  char last = '\n';
  if (status.st_size > 0 && ::pread(file_.get(), &last, 1, status.st_size - 1) != 1) {
    fail(errno_code(errno), "cannot read the end of {}: {}", path.string(), errno_text(errno));
  }
  torn_ = last != '\n';
}

void JsonlWriter::append(std::string_view line) {
  std::string bytes;
  bytes.reserve(line.size() + 2);
  if (torn_) bytes += '\n';
  bytes += line;
  bytes += '\n';
  ssize_t count;
  do {
    count = ::write(file_.get(), bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(bytes.size())) {
    torn_ = false;
    return;
  }
  if (count < 0) {
    fail(errno_code(errno), "cannot write {}: {}", path_.string(), errno_text(errno));
  }
  torn_ = true;
  fail(ErrorCode::kNoSpace, "cannot write {}: only {} of {} bytes were taken", path_.string(),
       count, bytes.size());
}

int64_t for_each_json_line(const fs::path& path, const std::function<void(const Json&)>& visit) {
  constexpr size_t kLongestLine = 1 << 20;
  if (!fs::exists(path)) return 0;
  const MappedFile file(path);
  std::string_view text = file.text();
  int64_t num_bad = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Json json;
    if (line.size() <= kLongestLine) {
      Result<Json> parsed = try_run([&] { return parse_json(line, path.string()); });
      if (parsed.ok()) json = std::move(parsed).value();
    }
    if (json.is_object()) {
      visit(json);
    } else {
      ++num_bad;
    }
  }
  return num_bad;
}

}  // namespace skein

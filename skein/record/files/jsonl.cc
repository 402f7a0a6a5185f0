#include "skein/record/files/jsonl.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {

namespace {

PatientFile lines_of(const fs::path& path) {
  FileDescriptor file = open_lines(path, /*create=*/true);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  char last = '\n';
  if (status.st_size > 0 && ::pread(file.get(), &last, 1, status.st_size - 1) != 1) {
    fail(errno_code(errno), "cannot read the end of {}: {}", path.string(), errno_text(errno));
  }
  return {std::move(file), path, PatientFile::AfterATear::kLineAgain, last != '\n'};
}

}  // namespace

JsonlWriter::JsonlWriter(const fs::path& path) : file_(lines_of(path)) {}

void JsonlWriter::append(std::string_view line) {
  std::string bytes;
  bytes.reserve(line.size() + 1);
  bytes += line;
  bytes += '\n';
  file_.append(bytes);
}

namespace {

constexpr size_t kLongestLine = 1 << 20;

// null: it is none.
Json object_of(std::string_view line, const fs::path& path) {
  if (line.size() > kLongestLine) return nullptr;
  Result<Json> parsed = try_run([&] { return parse_json(line, path.string()); });
  return parsed.ok() && parsed.value().is_object() ? std::move(parsed).value() : Json();
}

}  // namespace

int64_t for_each_json_line(const fs::path& path, const std::function<void(const Json&)>& visit,
                           size_t most_bytes) {
  const std::optional<FileDescriptor> opened = open_if_there(path);
  if (!opened) return 0;
  const MappedFile file(*opened, path);
  std::string_view text = file.text();
  text.remove_prefix(text.size() - std::min(text.size(), most_bytes));
  int64_t num_bad = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = object_of(line, path);
    if (json.is_object()) {
      visit(json);
    } else {
      ++num_bad;
    }
  }
  return num_bad;
}

void JsonlTail::read(const std::function<void(const Json&)>& visit) {
  const std::optional<FileDescriptor> opened = open_if_there(path_);
  if (!opened) return;
  const FileDescriptor& file = *opened;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path_.string(), errno_text(errno));
  }
  if (status.st_size < offset_) offset_ = 0;
  std::string piece(2 * kLongestLine, '\0');
  for (;;) {
    const ssize_t count = ::pread(file.get(), piece.data(), piece.size(), offset_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno_code(errno), "cannot read {}: {}", path_.string(), errno_text(errno));
    std::string_view rest(piece.data(), static_cast<size_t>(count));
    for (size_t end = 0; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      const Json json = object_of(rest.substr(0, end), path_);
      if (json.is_object()) visit(json);
    }
    // No line is longer than a piece: what has no end is passed over.
    const bool is_too_long = rest.size() == piece.size();
    offset_ += count - (is_too_long ? 0 : static_cast<int64_t>(rest.size()));
    if (static_cast<size_t>(count) < piece.size()) return;
  }
}

}  // namespace skein

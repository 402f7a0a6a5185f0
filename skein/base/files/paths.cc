#include "skein/base/files/paths.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "skein/base/error.h"

namespace skein {

std::string expand_home(const std::string& path, const std::string& setting) {
  if (!path.starts_with('~')) return path;
  if (path.size() > 1 && path[1] != '/') {
    fail(ErrorCode::kUsage,
         "{} is '{}': only your own home folder is known by ~/: write the path in full (a folder "
         "that really begins with ~ is ./{})",
         setting, path, path);
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    fail(ErrorCode::kUsage, "{} is '{}' and the variable HOME is not set: write the path in full",
         setting, path);
  }
  return home + path.substr(1);
}

namespace {

// 0, or the errno: makes a folder there and removes it, since the rights of a user do not tell
// (below /proc root may do anything, and makes nothing).
int why_no_folder_in(const fs::path& existing) {
  std::string probe = (existing / ".skein_probe_XXXXXX").string();
  if (::mkdtemp(probe.data()) == nullptr) return errno;
  ::rmdir(probe.c_str());
  return 0;
}

}  // namespace

void require_writable_folder(const fs::path& path, const std::string& setting) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorCode::kUsage, "{} is '{}': {}: name a folder that can be written", setting,
         path.string(), why);
  };
  // The folder itself, or the nearest of its parents that exists.
  fs::path existing = (fs::current_path() / path).lexically_normal();
  if (!existing.has_filename()) existing = existing.parent_path();  // after a trailing slash
  fs::file_status status;
  for (;; existing = existing.parent_path()) {
    std::error_code error;
    status = fs::status(existing, error);
    if (fs::exists(status)) break;
    const int number = error.value();
    if (number != ENOENT && number != ENOTDIR && number != 0) {
      refuse(fmt::format("cannot look at {}: {}", existing.string(), errno_text(number)));
    }
    if (!existing.has_relative_path()) break;
  }
  if (!fs::is_directory(status)) {
    refuse(fmt::format("{} is not a folder", existing.string()));
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    refuse(fmt::format("cannot write in {}: {}", existing.string(), errno_text(errno)));
  }
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  if (const int number = why_no_folder_in(existing); number != 0) {
    refuse(fmt::format("cannot make a folder in {}: {}", existing.string(), errno_text(number)));
  }
}

}  // namespace skein

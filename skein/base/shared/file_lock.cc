#include "skein/base/shared/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <sstream>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/mutex.h"

namespace skein {
namespace {

// Spaces in it are written as \040 in /proc/self/mountinfo.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_octal =
        text[i] == '\\' && i + 3 < text.size() &&
        std::all_of(&text[i] + 1, &text[i] + 4, [](char c) { return c >= '0' && c <= '7'; });
    if (!is_octal) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
    i += 3;
  }
  return plain;
}

bool lies_in(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(folder + "/");
}

// A warning a file system, and not one a file: a run opens hundreds.
void warn_once(const fs::path& path, const std::string& meaning, int error_number) {
  static Mutex mutex;
  static std::set<std::string> warned;
  const std::string where = file_system_of(path);
  {
    const Lock lock(mutex);
    if (!warned.insert(where + "\n" + meaning).second) return;
  }
  log::warn("{}: {} has no file locks ({}): {}", path.string(), where, errno_text(error_number),
            meaning);
}

}  // namespace

Locked try_lock(const FileDescriptor& file, int operation, const fs::path& path,
                const std::string& meaning) {
  if (retry_interrupted([&] { return ::flock(file.get(), operation | LOCK_NB); }) == 0) {
    return Locked::kTaken;
  }
  const int problem = errno;
  if (problem == EWOULDBLOCK) return Locked::kBusy;
  if (problem != ENOSYS && problem != EOPNOTSUPP && problem != ENOLCK) {
    fail(errno_code(problem), "cannot lock {}: {}", path.string(), errno_text(problem));
  }
  warn_once(path, meaning, problem);
  return Locked::kNever;
}

bool still_names(const fs::path& path, const FileDescriptor& file) {
  struct stat opened {
  }, named{};
  const bool is_seen = ::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0;
  if (!is_seen && !is_absence(errno)) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  return is_seen && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// Of the lines of mountinfo, the last one of the longest mount point: "36 35 98:0 / /mnt rw - ext4
// /dev/sda rw".
std::string file_system_of(const fs::path& path) {
  std::error_code none;
  const fs::path full = fs::canonical(path, none);
  std::istringstream mounts(read_file_if_any("/proc/self/mountinfo"));
  std::string best, kind;
  for (std::string line; !none && std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string word, place;
    for (int i = 0; i < 5 && words >> place; ++i) {
    }
    while (words >> word && word != "-") {
    }
    place = unescaped(place);
    if (!(words >> word) || !lies_in(full.string(), place) || place.size() < best.size()) continue;
    best = place;
    kind = word;
  }
  return best.empty() ? "its file system" : fmt::format("the file system at {} ({})", best, kind);
}

}  // namespace skein

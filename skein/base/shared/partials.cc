#include "skein/base/shared/partials.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "skein/base/error.h"
#include "skein/base/text/log.h"

namespace skein {
namespace {

// "corpus.arrow.0123456789abcdef.partial" of "corpus.arrow".
bool is_partial_of(std::string_view name, std::string_view finished) {
  constexpr std::string_view kEnd = ".partial", kDigits = "0123456789abcdef";
  constexpr size_t kNumDigits = 16;
  if (name.size() != finished.size() + 1 + kNumDigits + kEnd.size()) return false;
  if (!name.starts_with(finished) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(finished.size());
  return name[0] == '.' && name.substr(1, kNumDigits).find_first_not_of(kDigits) == name.npos;
}

// O_NONBLOCK: a FIFO of that name keeps nobody waiting.
FileDescriptor open_partial(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

bool is_ours(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

}  // namespace

FileDescriptor hold_partial(const fs::path& partial) {
  FileDescriptor file = open_partial(partial);
  hold_partial(file);
  return file;
}

void hold_partial(const FileDescriptor& file) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && file.get() >= 0; ++i) {
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::usleep(1000);  // somebody looks whether it is held
  }
}

std::vector<fs::path> dead_partials(const fs::path& path) {
  std::vector<fs::path> dead;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_partial_of(entry->path().filename().native(), path.filename().native())) continue;
    const FileDescriptor file = open_partial(entry->path());
    if (file.get() < 0 || !is_ours(file.get())) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) dead.push_back(entry->path());
  }
  return dead;
}

void remove_dead_partials(const fs::path& path) {
  for (const fs::path& partial : dead_partials(path)) {
    std::error_code error;
    fs::remove_all(partial, error);
    if (error) {
      log::warn("{} was left by a process that ended before it was done, and cannot be removed: {}",
                partial.string(), error.message());
    } else {
      log::info("removed {}, which a process left that ended before it was done", partial.string());
    }
  }
}

bool exchange_names(const fs::path& a, const fs::path& b) {
  const int result = retry_interrupted(
      [&] { return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); });
  if (result == 0) return true;
  const int problem = errno;
  if (problem == EINVAL || problem == ENOSYS || problem == ENOTSUP) return false;
  fail(errno_code(problem), "cannot exchange {} and {}: {}", a.string(), b.string(),
       errno_text(problem));
}

}  // namespace skein

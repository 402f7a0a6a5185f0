// Preloaded into skein by tests: file systems and moments that this machine does not have.
//
//   SKEIN_FLOCK=granted       flock grants every lock: each machine for itself
//   SKEIN_FLOCK=38            flock fails with this errno: a file system without locks
//   SKEIN_FSYNC=5             fsync fails with this errno: a disk that is broken
//   SKEIN_UNREADABLE=TEXT:N:FILE   opening a path that ends with TEXT fails with errno N while FILE
//                             exists
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// 0: it may be opened.
int refusal_of(const char* path) {
  const char* setting = std::getenv("SKEIN_UNREADABLE");
  if (setting == nullptr || path == nullptr) return 0;
  const std::string text = setting;
  const size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == text.npos || ::access(text.c_str() + second + 1, F_OK) != 0) return 0;
  if (!std::string_view(path).ends_with(text.substr(0, first))) return 0;
  return std::atoi(text.c_str() + first + 1);
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if (const int number = refusal_of(path); number != 0) {
    errno = number;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int flock(int fd, int operation) {
  const char* setting = std::getenv("SKEIN_FLOCK");
  if (setting == nullptr) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  if (std::string_view(setting) == "granted") return 0;
  errno = std::atoi(setting);
  return -1;
}

int fsync(int fd) {
  const char* setting = std::getenv("SKEIN_FSYNC");
  if (setting == nullptr) return static_cast<int>(::syscall(SYS_fsync, fd));
  errno = std::atoi(setting);
  return -1;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

}  // extern "C"

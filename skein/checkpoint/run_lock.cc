#include "skein/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "skein/base/error.h"

namespace skein {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::string read_holder(int fd) {
  std::array<char, 4096> text{};
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  return count > 0 ? std::string(text.data(), static_cast<size_t>(count)) : "another process";
}

// Whether process `pid` has the file `path` open. Of a process that we may not inspect, only
// whether it lives.
bool holds_open(int64_t pid, const fs::path& path) {
  const fs::path process = fmt::format("/proc/{}", pid);
  std::error_code error;
  if (!fs::exists(process, error)) return false;
  const fs::path wanted = fs::canonical(path, error);
  fs::directory_iterator files(process / "fd", error);
  if (error) return true;
  for (; files != fs::directory_iterator(); files.increment(error)) {
    if (error) return true;
    std::error_code gone;
    if (fs::read_symlink(files->path(), gone) == wanted) return true;
  }
  return false;
}

// False if somebody removed the locked file: the next process may have created another one.
bool is_still_there(int fd, const fs::path& path) {
  struct stat locked {
  }, named{};
  return ::fstat(fd, &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

FileDescriptor open_locked(const fs::path& folder, const fs::path& path,
                           const RunLock::Text& text) {
  FileDescriptor file(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      fail(errno_code(errno), "cannot lock {}: {}", path.string(), errno_text(errno));
    }
    fail(ErrorCode::kBusy, "{} {} is in use by {}: stop that process, or choose another {}",
         text.folder, folder.string(), read_holder(file.get()), text.key);
  }
  return file;
}

}  // namespace

RunHolder run_holder(const fs::path& folder) {
  constexpr std::string_view kProcess = "process ";
  const fs::path path = folder / ".lock";
  std::string holder;  // "process 4711 on some.host"
  {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return RunHolder::kNobody;
    holder = read_holder(file.get());
  }
  if (!holder.starts_with(kProcess)) return RunHolder::kNobody;
  int64_t pid = 0;
  std::from_chars(holder.data() + kProcess.size(), holder.data() + holder.size(), pid);
  if (holder.find(" on " + host_name()) == holder.npos) return RunHolder::kUnknown;
  return holds_open(pid, path) ? RunHolder::kThisMachine : RunHolder::kNobody;
}

RunLock::RunLock(const fs::path& folder, const Text& text) {
  const fs::path path = folder / ".lock";
  do {
    make_folders(folder);
    file_ = open_locked(folder, path, text);
  } while (!is_still_there(file_.get(), path));
  if (!text.names_holder) return;
  const std::string holder =
      fmt::format("process {} on {}{}", ::getpid(), host_name(), text.holder_note);
  if (retry_interrupted([&] { return ::ftruncate(file_.get(), 0); }) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
  write_all(file_.get(), std::as_bytes(std::span(holder)), path);
}

}  // namespace skein

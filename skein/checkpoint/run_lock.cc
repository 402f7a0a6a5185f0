#include "skein/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
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
  std::array<char, 300> text{};
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  return count > 0 ? std::string(text.data(), static_cast<size_t>(count)) : "another process";
}

// Whether process `pid` has the file `path` open; of a process that is not ours to look into, whether
// it lives.
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
  if (!holder.ends_with(" on " + host_name())) return RunHolder::kUnknown;
  return holds_open(pid, path) ? RunHolder::kThisMachine : RunHolder::kNobody;
}

RunLock::RunLock(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path path = folder / ".lock";
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (file_.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      fail(errno_code(errno), "cannot lock {}: {}", path.string(), errno_text(errno));
    }
    fail(ErrorCode::kBusy,
         "run folder {} is in use by {}: stop that process, or choose another run.dir",
         folder.string(), read_holder(file_.get()));
  }
  const std::string holder = fmt::format("process {} on {}", ::getpid(), host_name());
  if (::ftruncate(file_.get(), 0) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
  write_all(file_.get(), std::as_bytes(std::span(holder)), path);
}

}  // namespace skein

#include "skein/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

}  // namespace

RunLock::RunLock(const fs::path& folder, const Text& text) {
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
    fail(ErrorCode::kBusy, "{} {} is in use by {}: stop that process, or choose another {}",
         text.folder, folder.string(), read_holder(file_.get()), text.key);
  }
  const std::string holder =
      fmt::format("process {} on {}{}", ::getpid(), host_name(), text.holder_note);
  if (::ftruncate(file_.get(), 0) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
  write_all(file_.get(), std::as_bytes(std::span(holder)), path);
}

}  // namespace skein

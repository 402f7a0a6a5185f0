#include "skein/prepare/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/log.h"

namespace skein {
namespace {

// False if the process that held it before removed it: the next one makes another.
bool is_still_there(const FileDescriptor& file, const fs::path& path) {
  struct stat locked {
  }, named{};
  return ::fstat(file.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

FileDescriptor lock_file(const fs::path& folder, const fs::path& path, int operation) {
  FileDescriptor file(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  if (retry_interrupted([&] { return ::flock(file.get(), operation | LOCK_NB); }) == 0) return file;
  if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) {
    log::warn("{}: this file system has no locks ({}): see to it that nothing else works there",
              folder.string(), errno_text(errno));
    return file;
  }
  if (errno != EWOULDBLOCK) {
    fail(errno_code(errno), "cannot lock {}: {}", path.string(), errno_text(errno));
  }
  fail(ErrorCode::kBusy,
       "{}: another process works there, on the same output: wait for it, or name another output",
       folder.string());
}

bool is_lock(const fs::path& path) { return path.filename().string().starts_with("lock"); }

}  // namespace

fs::path work_folder_of(const fs::path& out) { return fs::path(out) += ".work"; }

WorkFolder::WorkFolder(const fs::path& folder, const std::optional<WorkShare>& share)
    : folder_(folder), is_shared_(share.has_value()) {
  const fs::path path = folder / "lock";
  do {
    make_folders(folder);
    lock_ = lock_file(folder, path, share ? LOCK_SH : LOCK_EX);
  } while (!is_still_there(lock_, path));
  if (!share) return;
  share_lock_ =
      lock_file(folder, folder / fmt::format("lock-{}-of-{}", share->index, share->count), LOCK_EX);
}

WorkFolder::~WorkFolder() {
  if (is_shared_) return;
  std::error_code ignored;
  std::vector<fs::path> locks;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (!is_lock(entry.path())) return;
    locks.push_back(entry.path());
  }
  for (const fs::path& path : locks) fs::remove(path, ignored);
  fs::remove(folder_, ignored);
}

}  // namespace skein

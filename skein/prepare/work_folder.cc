#include "skein/prepare/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

#include "skein/base/error.h"

namespace skein {
namespace {

// False if the process that held it before removed it: the next one makes another.
bool is_still_there(const FileDescriptor& file, const fs::path& path) {
  struct stat locked {
  }, named{};
  return ::fstat(file.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

FileDescriptor lock_file(const fs::path& folder, const fs::path& path) {
  FileDescriptor file(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  if (retry_interrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) {
      fail(ErrorCode::kBusy,
           "{}: another process works there, on the same output: wait for it, or name another "
           "output",
           folder.string());
    }
    fail(errno_code(errno), "cannot lock {}: {}", path.string(), errno_text(errno));
  }
  return file;
}

}  // namespace

fs::path work_folder_of(const fs::path& out) { return fs::path(out) += ".work"; }

WorkFolder::WorkFolder(const fs::path& folder) : folder_(folder) {
  const fs::path path = folder / "lock";
  do {
    make_folders(folder);
    lock_ = lock_file(folder, path);
  } while (!is_still_there(lock_, path));
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (entry.path().filename() != "lock") return;
  }
  fs::remove(folder_ / "lock", ignored);
  fs::remove(folder_, ignored);
}

}  // namespace skein

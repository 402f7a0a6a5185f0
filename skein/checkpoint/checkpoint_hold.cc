#include "skein/checkpoint/checkpoint_hold.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "skein/base/error.h"
#include "skein/objects/object_url.h"

namespace skein {
namespace {

constexpr const char* kManifest = "manifest.json";

[[noreturn]] void fail_to_open(const fs::path& path, int error_number) {
  fail(errno_code(error_number), "cannot open {}: {}", path.string(), errno_text(error_number));
}

// False if another process holds a conflicting lock.
bool lock(const FileDescriptor& file, int kind) {
  while (::flock(file.get(), kind | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno != EWOULDBLOCK;  // a file system without locks
  }
  return true;
}

}  // namespace

CheckpointHold::CheckpointHold(const fs::path& checkpoint) : path_(checkpoint) {
  if (is_object_url(path_)) return;
  folder_ = FileDescriptor(::open(checkpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_.get() < 0) fail_to_open(path_ / kManifest, errno);
  manifest_ = open(kManifest);
  if (!lock(manifest_, LOCK_SH)) {
    fail(ErrorCode::kNotFound, "{} is just being removed", path_.string());
  }
}

StoredFile CheckpointHold::file(const std::string& name) const {
  return is_object_url(path_) ? StoredFile(path_ / name) : StoredFile(open(name), path_ / name);
}

FileDescriptor CheckpointHold::open(const std::string& name) const {
  FileDescriptor file(::openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_to_open(path_ / name, errno);
  return file;
}

std::optional<FileDescriptor> claim_for_removal(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  // NFS grants an exclusive lock only on a file that is open for writing.
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() >= 0 && !lock(file, LOCK_EX)) return std::nullopt;
  return file;
}

}  // namespace skein

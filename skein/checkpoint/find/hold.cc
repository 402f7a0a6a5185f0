#include "skein/checkpoint/find/hold.h"

#include <sys/file.h>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/file_lock.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

constexpr const char* kManifest = "manifest.json";

// False if another process holds a conflicting lock.
bool lock(const FileDescriptor& file, int kind, const fs::path& path) {
  return try_lock(file, kind, path,
                  "a checkpoint may be removed while another process reads it; that process then "
                  "reports that it is gone") != Locked::kBusy;
}

// Opened to be locked for removal: NFS grants an exclusive lock only on a file that is open for
// writing. Nothing: there is no file that anybody could read.
std::optional<FileDescriptor> open_manifest(const fs::path& path) {
  try {
    return open_to_change(path);
  } catch (const Error&) {  // it may be there to read alone
  }
  try {
    return open_if_there(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalid) return std::nullopt;  // a FIFO, a folder
    throw;
  }
}

}  // namespace

CheckpointHold::CheckpointHold(const fs::path& checkpoint) : path_(checkpoint) {
  if (is_object_url(path_)) return;
  folder_ = open_folder(checkpoint);
  manifest_ = open(kManifest);
  if (!lock(manifest_, LOCK_SH, path_ / kManifest)) {
    fail(ErrorCode::kNotFound, "{} is just being removed", path_.string());
  }
}

StoredFile CheckpointHold::file(const std::string& name) const {
  return is_object_url(path_) ? StoredFile(path_ / name) : StoredFile(open(name), path_ / name);
}

FileDescriptor CheckpointHold::open(const std::string& name) const {
  return open_to_read(folder_, name, path_ / name);
}

std::optional<FileDescriptor> claim_for_removal(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  std::optional<FileDescriptor> file = open_manifest(path);
  if (!file) return FileDescriptor();
  if (!lock(*file, LOCK_EX, path)) return std::nullopt;
  return file;
}

}  // namespace skein

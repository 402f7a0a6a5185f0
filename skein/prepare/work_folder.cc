#include "skein/prepare/work_folder.h"

#include <sys/file.h>

#include <system_error>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/file_lock.h"

namespace skein {
namespace {

FileDescriptor lock_file(const fs::path& folder, const fs::path& path, int operation) {
  FileDescriptor file = open_or_create(path);
  const Locked locked = try_lock(file, operation, path, "see to it that nothing else works there");
  if (locked != Locked::kBusy) return file;
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
  } while (!still_names(path, lock_));  // whoever held it before may have removed it
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

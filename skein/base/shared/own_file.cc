#include "skein/base/shared/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

// Memory of this machine first, which a restart of it clears. Not TMPDIR before /tmp: it may be
// another one in each session of this user.
std::vector<fs::path> usual_places() {
  std::vector<fs::path> places = {"/dev/shm", "/tmp"};
  std::error_code none;
  if (const fs::path named = fs::temp_directory_path(none); !none) places.push_back(named);
  return places;
}

std::string mode_text(const struct stat& status) {
  return fmt::format("{:04o}", status.st_mode & 07777);
}

// What is there under the name of this user's folder: without following links.
[[noreturn]] void refuse_folder(const fs::path& path, const struct stat& found) {
  if (S_ISDIR(found.st_mode) && found.st_uid == ::geteuid()) {
    fail(ErrorCode::kIo,
         "others can write to {} (mode {}), which holds what the processes of {} tell each other: "
         "expected mode 0700; `rm -r {}` removes it, and the next start makes it again",
         path.string(), mode_text(found), owner_text(found.st_uid), path.string());
  }
  fail(ErrorCode::kIo,
       "{} is {}: expected a folder of {} with mode 0700, where its processes tell each other who "
       "they are; nothing of it is used. Its owner or root removes it: `rm -r {}`",
       path.string(), kind_text(found), owner_text(::geteuid()), path.string());
}

// Nothing: no folder can be made in this place.
std::optional<FileDescriptor> folder_at(const fs::path& path) {
  const bool is_made = ::mkdir(path.c_str(), 0700) == 0;
  if (!is_made && errno != EEXIST) return std::nullopt;
  FileDescriptor folder(retry_interrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  struct stat found {};
  if (folder.get() < 0) {
    const int problem = errno;
    if (::lstat(path.c_str(), &found) == 0 &&
        (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid())) {
      refuse_folder(path, found);
    }
    fail(errno_code(problem), "cannot open {}: {}", path.string(), errno_text(problem));
  }
  if (::fstat(folder.get(), &found) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  if (found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) refuse_folder(path, found);
  if (is_made) ::fchmod(folder.get(), 0700);  // whatever the umask took away
  // One that was made while the place could be written to, which may be read-only by now.
  if (::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return std::nullopt;
  return folder;
}

}  // namespace

OwnFolder::OwnFolder() : OwnFolder(usual_places()) {}

OwnFolder::OwnFolder(const std::vector<fs::path>& places) {
  std::string tried;
  for (const fs::path& place : places) {
    path_ = place / fmt::format("skein-{}", ::geteuid());
    if (std::optional<FileDescriptor> folder = folder_at(path_)) {
      folder_ = *std::move(folder);
      return;
    }
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", place.string(), errno_text(errno));
  }
  fail(ErrorCode::kIo,
       "cannot make a folder for what processes of one machine tell each other: tried {}; let "
       "TMPDIR name a folder that can be written to",
       tried);
}

FileDescriptor OwnFolder::open(const std::string& name) const {
  const fs::path path = path_ / name;
  FileDescriptor file(retry_interrupted([&] {
    return ::openat(folder_.get(), name.c_str(),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  }));
  struct stat found {};
  if (file.get() < 0) {
    const int problem = errno;
    const bool is_seen = ::fstatat(folder_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
    const bool is_own = !is_seen || (S_ISREG(found.st_mode) && found.st_uid == ::geteuid());
    fail(errno_code(problem), "cannot open {}: {}{}", path.string(), errno_text(problem),
         is_own ? "" : fmt::format("; it is {}, and nothing of it is used", kind_text(found)));
  }
  if (::fstat(file.get(), &found) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || found.st_nlink > 1 ||
      (found.st_mode & 077) != 0) {
    fail(ErrorCode::kIo,
         "{} is {} with mode {} and {} names: expected a file of {} with mode 0600 and one name; "
         "nothing of it is used. `rm {}` removes it",
         path.string(), kind_text(found), mode_text(found), found.st_nlink, owner_text(::geteuid()),
         path.string());
  }
  return file;
}

bool OwnFolder::still_names(const std::string& name, const FileDescriptor& file) const {
  struct stat opened {
  }, named{};
  return ::fstat(file.get(), &opened) == 0 &&
         ::fstatat(folder_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void OwnFolder::remove(const std::string& name) const noexcept {
  ::unlinkat(folder_.get(), name.c_str(), 0);
}

}  // namespace skein

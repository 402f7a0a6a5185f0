#include "skein/base/files/open_file.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "skein/base/error.h"

namespace skein {
namespace {

enum class Kinds { kRegular, kRegularOrDevice, kAnyToRead };

[[noreturn]] void fail_io(std::string_view verb, const fs::path& path, int error_number) {
  fail(errno_code(error_number), "cannot {} {}: {}", verb, path.string(), errno_text(error_number));
}

struct stat status_of(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_io("stat", path, errno);
  return status;
}

bool is_allowed(mode_t mode, Kinds kinds) {
  if (S_ISREG(mode)) return true;
  if (kinds == Kinds::kRegularOrDevice) return S_ISCHR(mode);
  return kinds == Kinds::kAnyToRead && (S_ISFIFO(mode) || S_ISCHR(mode));
}

// Reads and writes wait again, as everybody expects of them.
void wait_from_now_on(const FileDescriptor& file) {
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (flags >= 0) ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK);
}

// A FIFO that nobody has opened for writing yet reads as if it were at its end.
void wait_for_writer(const FileDescriptor& file) {
  struct pollfd entry {
    file.get(), POLLIN, 0
  };
  while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {
  }
}

struct Opening {
  int folder = AT_FDCWD;
  const char* name;
  const fs::path& path;  // for errors
  int flags;
  Kinds kinds = Kinds::kRegular;
  mode_t mode = 0;
};

// Without a file: errno says why.
FileDescriptor try_open(const Opening& opening) {
  const auto call = [&](int more) {
    return FileDescriptor(retry_interrupted([&] {
      return ::openat(opening.folder, opening.name, opening.flags | O_CLOEXEC | O_NOCTTY | more,
                      opening.mode);
    }));
  };
  FileDescriptor file = call(O_NONBLOCK);
  struct stat named {};
  // A lease of another process (Samba), or a file that is on tape: the one case that must wait.
  if (file.get() < 0 && errno == EWOULDBLOCK &&
      ::fstatat(opening.folder, opening.name, &named, 0) == 0 && S_ISREG(named.st_mode)) {
    return call(0);
  }
  return file;
}

FileDescriptor checked(FileDescriptor file, const Opening& opening) {
  const struct stat status = status_of(file, opening.path);
  if (!is_allowed(status.st_mode, opening.kinds)) require_regular(status, opening.path);
  if (S_ISFIFO(status.st_mode)) wait_for_writer(file);
  wait_from_now_on(file);
  return file;
}

// What refuses to be opened is named where it is no file: a FIFO without a reader, a socket.
[[noreturn]] void fail_to_open(const Opening& opening, int error_number) {
  struct stat named {};
  if (error_number == ELOOP && (opening.flags & O_NOFOLLOW) != 0 &&
      ::lstat(opening.path.c_str(), &named) == 0) {
    require_regular(named, opening.path);
  }
  if (!is_absence(error_number) && ::fstatat(opening.folder, opening.name, &named, 0) == 0) {
    if (error_number == ENXIO || error_number == EISDIR) require_regular(named, opening.path);
    if (error_number == EACCES && named.st_uid != ::geteuid()) {
      fail(ErrorCode::kIo, "cannot open {}: {}; it is {}", opening.path.string(),
           errno_text(error_number), kind_text(named));
    }
  }
  fail_io("open", opening.path, error_number);
}

FileDescriptor open_or_fail(const Opening& opening) {
  FileDescriptor file = try_open(opening);
  if (file.get() < 0) fail_to_open(opening, errno);
  return checked(std::move(file), opening);
}

fs::file_status status_now(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() != fs::file_type::not_found && error) fail_io("stat", path, error.value());
  return status;
}

}  // namespace

bool is_absence(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

FileDescriptor open_to_read(const fs::path& path) {
  return open_or_fail({.name = path.c_str(), .path = path, .flags = O_RDONLY});
}

FileDescriptor open_to_read(const FileDescriptor& folder, const std::string& name,
                            const fs::path& path) {
  return open_or_fail(
      {.folder = folder.get(), .name = name.c_str(), .path = path, .flags = O_RDONLY});
}

std::optional<FileDescriptor> open_if_there(const fs::path& path) {
  const Opening opening{.name = path.c_str(), .path = path, .flags = O_RDONLY};
  FileDescriptor file = try_open(opening);
  if (file.get() < 0 && is_absence(errno)) return std::nullopt;
  if (file.get() < 0) fail_to_open(opening, errno);
  return checked(std::move(file), opening);
}

FileDescriptor open_stream(const fs::path& path) {
  return open_or_fail(
      {.name = path.c_str(), .path = path, .flags = O_RDONLY, .kinds = Kinds::kAnyToRead});
}

FileDescriptor open_to_change(const fs::path& path) {
  return open_or_fail({.name = path.c_str(), .path = path, .flags = O_RDWR});
}

FileDescriptor open_or_create(const fs::path& path, mode_t mode) {
  return open_or_fail(
      {.name = path.c_str(), .path = path, .flags = O_RDWR | O_CREAT | O_NOFOLLOW, .mode = mode});
}

FileDescriptor open_to_append(const fs::path& path) {
  return open_or_fail({.name = path.c_str(),
                       .path = path,
                       .flags = O_WRONLY | O_CREAT | O_APPEND,
                       .kinds = Kinds::kRegularOrDevice,
                       .mode = 0644});
}

FileDescriptor open_lines(const fs::path& path, bool create) {
  return open_or_fail({.name = path.c_str(),
                       .path = path,
                       .flags = O_RDWR | O_APPEND | (create ? O_CREAT : 0),
                       .kinds = Kinds::kRegularOrDevice,
                       .mode = 0644});
}

FileDescriptor create_new(const fs::path& path, mode_t mode) {
  FileDescriptor file(retry_interrupted(
      [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode); }));
  if (file.get() < 0) fail_io("create", path, errno);
  return file;
}

FileDescriptor open_folder(const fs::path& path) {
  FileDescriptor folder(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (folder.get() < 0) fail_io("open", path, errno);
  return folder;
}

void require_regular(const struct stat& status, const fs::path& path) {
  if (S_ISREG(status.st_mode)) return;
  fail(ErrorCode::kInvalid, "{} is not a regular file: expected a file to read, found {}",
       path.string(), kind_text(status));
}

std::optional<std::string> read_file_if_there(const fs::path& path, int64_t max_bytes) {
  const std::optional<FileDescriptor> file = open_if_there(path);
  if (!file) return std::nullopt;
  return read_file(*file, path, max_bytes);
}

bool is_there(const fs::path& path) { return fs::exists(status_now(path)); }
bool is_folder_there(const fs::path& path) { return fs::is_directory(status_now(path)); }

std::string owner_text(uid_t owner) {
  std::array<char, 4096> memory{};
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(owner, &entry, memory.data(), memory.size(), &found) != 0 || found == nullptr) {
    return fmt::format("user {}", owner);
  }
  return fmt::format("{} ({})", found->pw_name, owner);
}

std::string kind_text(const struct stat& status) {
  const mode_t mode = status.st_mode;
  const char* kind = S_ISREG(mode)    ? "a file"
                     : S_ISDIR(mode)  ? "a folder"
                     : S_ISFIFO(mode) ? "a FIFO"
                     : S_ISSOCK(mode) ? "a socket"
                     : S_ISCHR(mode)  ? "a device"
                     : S_ISBLK(mode)  ? "a block device"
                     : S_ISLNK(mode)  ? "a symbolic link"
                                      : "something";
  return fmt::format("{} of {}", kind, owner_text(status.st_uid));
}

}  // namespace skein

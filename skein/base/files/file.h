// Files: read whole, mapped, or replaced atomically and durably.
//
// Errors   every function throws Error{kNotFound | kIo | kNoSpace} naming the path and errno,
//          unless it says otherwise.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace skein {

namespace fs = std::filesystem;

// The result of a system call, which is made again for as long as a signal interrupts it: over NFS
// and on file systems in user space nearly every one can be.
template <typename Call>
auto retry_interrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// An owned file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Reads the whole file as text; refuses a file larger than `max_bytes`.
std::string read_file(const fs::path& path, int64_t max_bytes = int64_t{1} << 30);
// The same for an open file; `path` stands for it in errors.
std::string read_file(const FileDescriptor& file, const fs::path& path,
                      int64_t max_bytes = int64_t{1} << 30);

// The text of a small system file (/proc, /sys), whose size is not known in advance; empty if it
// cannot be read. Never throws.
std::string read_file_if_any(const fs::path& path);

// A name beside `path` for an unfinished file or folder: `<path>.<random digits>.partial`. No other
// process uses it; whoever creates it must insist on that (O_EXCL, mkdir).
fs::path unique_partial(const fs::path& path);

// Writes a file with such a name, fsyncs it, renames it to `path` and fsyncs the folder: after a
// crash at any moment `path` has either its old bytes or the new ones. A failure leaves no file
// behind.
void write_file_atomic(const fs::path& path, std::string_view bytes);

// Gives the file `from` the name `to`, unless there is such a file: then it returns false. Of
// several processes one succeeds, also over NFS. `from` may keep its name as well. Errors as above
bool name_once(const fs::path& from, const fs::path& to);

// Writes all bytes at the current offset, retrying short writes.
void write_all(int fd, std::span<const std::byte> bytes, const fs::path& path);

// Closes a file that was written. Some file systems (NFS) say only then that a disk is full.
void close_written(FileDescriptor file, const fs::path& path);

// Creates a folder, and those that it lies in, unless they are there.
void make_folders(const fs::path& folder);

// Makes earlier creations and renames inside `folder` durable.
void fsync_folder(const fs::path& folder);
void fsync_file(int fd, const fs::path& path);

// A read-only memory map; moves, does not copy. An empty file maps to an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const fs::path& path);
  MappedFile(const FileDescriptor& file, const fs::path& path);  // a file that is open already
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const fs::path& path() const { return path_; }

  // Drops the pages of `part` from this process's resident memory; reading them again reads the
  // file again. Bytes outside the map are ignored. Safe while others read.
  void forget(std::span<const std::byte> part) const;

 private:
  void swap(MappedFile& other) noexcept;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  fs::path path_;
};

}  // namespace skein

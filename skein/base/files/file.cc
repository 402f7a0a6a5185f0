#include "skein/base/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

[[noreturn]] void fail_io(std::string_view verb, const fs::path& path, int error_number) {
  fail(errno_code(error_number), "cannot {} {}: {}", verb, path.string(), errno_text(error_number));
}

int64_t regular_file_size(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_io("stat", path, errno);
  require_regular(status, path);
  return status.st_size;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string read_file(const fs::path& path, int64_t max_bytes) {
  return read_file(open_to_read(path), path, max_bytes);
}

std::string read_file(const FileDescriptor& file, const fs::path& path, int64_t max_bytes) {
  const int64_t size = regular_file_size(file.get(), path);
  if (size > max_bytes) {
    fail(ErrorCode::kInvalid, "{} has {} bytes: expected at most {}", path.string(), size,
         max_bytes);
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = retry_interrupted(
        [&] { return ::read(file.get(), bytes.data() + done, bytes.size() - done); });
    if (count < 0) fail_io("read", path, errno);
    if (count == 0) break;  // shortened while being read
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

std::string read_file_if_any(const fs::path& path) {
  try {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  } catch (const std::ios_base::failure&) {  // the buffer throws where read() fails
    return "";
  }
}

// Some file systems have no links: SMB, FAT, many in user space.
bool name_once(const fs::path& from, const fs::path& to) {
  if (retry_interrupted([&] { return ::link(from.c_str(), to.c_str()); }) == 0) return true;
  const int problem = errno;
  if (problem == EEXIST) return false;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  fail(errno_code(problem), "cannot create {}: {}", to.string(), errno_text(problem));
}

void write_all(int fd, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count =
        retry_interrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (count < 0) fail_io("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  do {
    fs::create_directories(folder, error);
  } while (error == std::errc::interrupted);
  if (error) fail_io("make folder", folder, error.value());
}

// Not tried again where a signal interrupts it: the number may be another file's by then.
void close_written(FileDescriptor file, const fs::path& path) {
  if (::close(file.release()) != 0 && errno != EINTR) fail_io("close", path, errno);
}

void fsync_file(int fd, const fs::path& path) {
  if (retry_interrupted([&] { return ::fsync(fd); }) != 0) fail_io("fsync", path, errno);
}

void fsync_folder(const fs::path& folder) {
  const FileDescriptor file = open_folder(folder);
  fsync_file(file.get(), folder);
}

fs::path unique_partial(const fs::path& path) {
  std::random_device device;
  const uint64_t digits = uint64_t{device()} << 32 | device();
  return fmt::format("{}.{:016x}.partial", path.string(), digits);
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  const fs::path partial = unique_partial(path);
  try {
    const FileDescriptor file = create_new(partial);
    write_all(file.get(), std::as_bytes(std::span(bytes)), partial);
    fsync_file(file.get(), partial);
    if (retry_interrupted([&] { return ::rename(partial.c_str(), path.c_str()); }) != 0) {
      fail_io("rename to", path, errno);
    }
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
  fsync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

MappedFile::MappedFile(const fs::path& path) : MappedFile(open_to_read(path), path) {}

MappedFile::MappedFile(const FileDescriptor& file, const fs::path& path) : path_(path) {
  size_ = static_cast<size_t>(regular_file_size(file.get(), path));
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) fail_io("map", path, errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::forget(std::span<const std::byte> part) const {
  const auto base = reinterpret_cast<uintptr_t>(data_);
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  if (part.empty() || begin < base || begin + part.size() > base + size_) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = begin / page * page;  // the map begins with a page
  ::madvise(reinterpret_cast<void*>(first), begin + part.size() - first, MADV_DONTNEED);
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
}

}  // namespace skein

#include "skein/objects/sparse_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "skein/base/error.h"

namespace skein {
namespace {

// TMPDIR, else /tmp, whether or not it is there.
fs::path temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "/tmp" : folder;
}

FileDescriptor nameless_file(const fs::path& folder) {
  std::string name = folder / "skein_objects_XXXXXX";
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {}: {}: TMPDIR names another folder", name,
         errno_text(errno));
  }
  ::unlink(name.c_str());
  return file;
}

}  // namespace

SparseFile::SparseFile(const fs::path& folder)
    : folder_(folder.empty() ? temporary_folder() : folder), file_(nameless_file(folder_)) {
  constexpr int64_t kTried = int64_t{64} << 10;
  grow(kTried);
  punch(0, kTried);
}

int64_t SparseFile::grow(int64_t num_bytes) {
  if (::ftruncate(file_.get(), num_bytes_ + num_bytes) != 0) {
    fail(errno_code(errno),
         "{}: a file of {} bytes, most of them holes, cannot be made there: {}: TMPDIR names "
         "another folder",
         folder_.string(), num_bytes_ + num_bytes, errno_text(errno));
  }
  const int64_t begin = num_bytes_;
  num_bytes_ += num_bytes;
  return begin;
}

void SparseFile::write(int64_t at, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = retry_interrupted(
        [&] { return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)); });
    if (count <= 0) {
      fail(errno_code(errno),
           "{}: cannot write what was read of an object: {}: make room, lower data.cache_bytes, or "
           "name another folder in TMPDIR",
           folder_.string(), errno_text(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    at += count;
  }
}

void SparseFile::punch(int64_t at, int64_t num_bytes) {
  const int result = retry_interrupted([&] {
    return ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, num_bytes);
  });
  if (result == 0) return;
  fail(errno == EOPNOTSUPP ? ErrorCode::kUnsupported : errno_code(errno),
       "{}: blocks of a file cannot be given back there: {}: expected a folder on a local disk in "
       "TMPDIR",
       folder_.string(), errno_text(errno));
}

const std::byte* SparseFile::map(int64_t at, int64_t num_bytes) const {
  void* address =
      ::mmap(nullptr, static_cast<size_t>(num_bytes), PROT_READ, MAP_SHARED, file_.get(), at);
  if (address == MAP_FAILED) {
    fail(errno_code(errno), "{}: cannot map {} bytes: {}", folder_.string(), num_bytes,
         errno_text(errno));
  }
  return static_cast<const std::byte*>(address);
}

}  // namespace skein

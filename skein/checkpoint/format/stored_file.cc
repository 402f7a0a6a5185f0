#include "skein/checkpoint/format/stored_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/objects/ranges.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

int64_t size_of_file(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  require_regular(status, path);
  return status.st_size;
}

}  // namespace

StoredFile::StoredFile(const fs::path& path) : path_(path) {
  if (is_object_url(path)) {
    object_ = std::make_unique<ObjectRanges>(parse_object_url(path.native()));
    num_bytes_ = object_->num_bytes();
  } else {
    file_ = open_to_read(path);
    num_bytes_ = size_of_file(file_, path_);
  }
}

StoredFile::StoredFile(FileDescriptor file, const fs::path& path)
    : path_(path), file_(std::move(file)), num_bytes_(size_of_file(file_, path_)) {}

StoredFile::StoredFile(const fs::path& path, int64_t num_bytes)
    : path_(path), num_bytes_(num_bytes) {
  if (is_object_url(path)) {
    object_ = std::make_unique<ObjectRanges>(parse_object_url(path.native()), num_bytes);
    return;
  }
  file_ = open_to_read(path);
  if (const int64_t found = size_of_file(file_, path_); found != num_bytes) {
    fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", path.string(), found, num_bytes);
  }
}

StoredFile::~StoredFile() = default;
StoredFile::StoredFile(StoredFile&&) noexcept = default;

void StoredFile::read(int64_t begin, std::span<std::byte> target) const {
  if (object_ != nullptr) return object_->read(begin, target);
  size_t done = 0;
  while (done < target.size()) {
    const ssize_t count = retry_interrupted([&] {
      return ::pread(file_.get(), target.data() + done, target.size() - done,
                     begin + static_cast<int64_t>(done));
    });
    if (count < 0) {
      fail(errno_code(errno), "cannot read {}: {}", path_.string(), errno_text(errno));
    }
    if (count == 0) {
      fail(ErrorCode::kCorrupt, "{} ends at byte {}, expected more", path_.string(),
           begin + static_cast<int64_t>(done));
    }
    done += static_cast<size_t>(count);
  }
}

std::string StoredFile::text(int64_t most) const {
  std::string text(static_cast<size_t>(std::min(most, num_bytes_)), '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_stored(const fs::path& path) {
  if (is_object_url(path)) return object_exists(parse_object_url(path.native()));
  return is_there(path);
}

}  // namespace skein

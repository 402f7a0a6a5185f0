#include "skein/prepare/read/bytes/arrow_input.h"

#include <arrow/buffer.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "skein/base/files/open_file.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/byte_source.h"

namespace skein {
namespace {

class FileRanges : public RangeReader {
 public:
  // A pipe is opened as one, so that the error says what helps.
  explicit FileRanges(const fs::path& path) : path_(path), file_(open_stream(path)) {
    struct stat state {};
    if (::fstat(file_.get(), &state) != 0) fail_errno("stat");
    if (!S_ISREG(state.st_mode)) {
      fail(ErrorCode::kInvalid,
           "{}: no regular file: expected one, since its parts are read in any order; write it to "
           "a file first",
           path.string());
    }
    num_bytes_ = state.st_size;
  }
  std::string name() const override { return path_.string(); }
  int64_t num_bytes() const override { return num_bytes_; }
  void read(int64_t begin, std::span<char> out) override {
    while (!out.empty()) {
      const ssize_t count =
          retry_interrupted([&] { return ::pread(file_.get(), out.data(), out.size(), begin); });
      if (count < 0) fail_errno("read");
      if (count == 0) {
        fail(ErrorCode::kCorrupt, "{}: ends at byte {}, but had {} bytes: cut while it was read",
             name(), begin, num_bytes_);
      }
      begin += count;
      out = out.subspan(static_cast<size_t>(count));
    }
  }

 private:
  [[noreturn]] void fail_errno(const char* verb) const {
    fail(errno_code(errno), "cannot {} {}: {}", verb, path_.string(), errno_text(errno));
  }
  fs::path path_;
  FileDescriptor file_;
  int64_t num_bytes_ = 0;
};

std::unique_ptr<RangeReader> ranges_of(const fs::path& path) {
  if (is_object_url(path)) return open_ranges(parse_object_url(path.native()));
  return std::make_unique<FileRanges>(path);
}

}  // namespace

ArrowInput::ArrowInput(const fs::path& path) : bytes_(ranges_of(path)) {}

void ArrowInput::rethrow() const {
  if (error_) throw Error(*error_);
}

arrow::Status ArrowInput::Seek(int64_t position) {
  if (position < 0) return arrow::Status::Invalid("a position before the file");
  position_ = position;
  return arrow::Status::OK();
}

arrow::Result<int64_t> ArrowInput::ReadAt(int64_t position, int64_t num_bytes, void* out) {
  if (position < 0 || num_bytes < 0) return arrow::Status::Invalid("no such bytes in the file");
  const int64_t left = std::max<int64_t>(0, this->num_bytes() - position);
  const int64_t count = std::min(num_bytes, left);
  if (count == 0) return count;
  try {
    bytes_->read(position, {static_cast<char*>(out), static_cast<size_t>(count)});
  } catch (const Error& error) {
    error_ = error;
    return arrow::Status::IOError(error.what());
  }
  num_read_ += count;
  return count;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> ArrowInput::ReadAt(int64_t position,
                                                                 int64_t num_bytes) {
  // A damaged file asks for more than there is.
  const int64_t left = std::max<int64_t>(0, this->num_bytes() - position);
  ARROW_ASSIGN_OR_RAISE(auto buffer,
                        arrow::AllocateResizableBuffer(std::clamp<int64_t>(num_bytes, 0, left)));
  ARROW_ASSIGN_OR_RAISE(const int64_t count,
                        ReadAt(position, buffer->size(), buffer->mutable_data()));
  ARROW_RETURN_NOT_OK(buffer->Resize(count));
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

arrow::Result<int64_t> ArrowInput::Read(int64_t num_bytes, void* out) {
  ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position_, num_bytes, out));
  position_ += count;
  return count;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> ArrowInput::Read(int64_t num_bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, num_bytes));
  position_ += buffer->size();
  return buffer;
}

void DecodingMemory::check(const std::string& name) const {
  if (!is_exceeded_) return;
  fail(ErrorCode::kUnsupported,
       "{}: one batch takes more than {} bytes of memory once decoded, of a file of {}: a "
       "compression bomb? --max-expansion 0 reads it nevertheless",
       name, most_expanded(num_file_bytes_, max_expansion_), num_file_bytes_);
}

arrow::Status DecodingMemory::reserve(int64_t num_bytes) {
  const int64_t most = most_expanded(num_file_bytes_, max_expansion_);
  if (num_bytes <= most - bytes_allocated()) return arrow::Status::OK();
  is_exceeded_ = true;
  return arrow::Status::OutOfMemory("more than ", most, " bytes");
}

arrow::Status DecodingMemory::Allocate(int64_t size, int64_t alignment, uint8_t** out) {
  ARROW_RETURN_NOT_OK(reserve(size));
  return pool_.Allocate(size, alignment, out);
}

arrow::Status DecodingMemory::Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                                         uint8_t** out) {
  ARROW_RETURN_NOT_OK(reserve(new_size - old_size));
  return pool_.Reallocate(old_size, new_size, alignment, out);
}

}  // namespace skein

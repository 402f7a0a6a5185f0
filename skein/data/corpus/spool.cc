#include "skein/data/corpus/spool.h"

#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/partials.h"

namespace skein {
namespace {

constexpr size_t kSpoolBufferBytes = size_t{1} << 20;
constexpr int64_t kWriteBytes = int64_t{8} << 20;
constexpr int64_t kCopyBytes = int64_t{64} << 20;

const uint8_t* map(int64_t num_bytes, int protection, int flags, int fd, const fs::path& path) {
  if (num_bytes == 0) return nullptr;
  void* address = ::mmap(nullptr, static_cast<size_t>(num_bytes), protection, flags, fd, 0);
  if (address == MAP_FAILED) {
    fail(errno_code(errno), "cannot map {}: {}", path.string(), errno_text(errno));
  }
  return static_cast<const uint8_t*>(address);
}

// Where the stream goes.
class StreamFile : public arrow::io::OutputStream {
 public:
  StreamFile(int fd, const fs::path& path) : fd_(fd), path_(path) {}

  arrow::Status Write(const void* data, int64_t num_bytes) override {
    try {
      write_all(fd_, {static_cast<const std::byte*>(data), static_cast<size_t>(num_bytes)}, path_);
    } catch (const Error& error) {
      error_ = error;
      return arrow::Status::IOError(error.what());
    }
    position_ += num_bytes;
    return arrow::Status::OK();
  }

  arrow::Status Close() override { return closed_ = true, arrow::Status::OK(); }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }

  void check(const arrow::Status& status) const {
    if (error_) throw *error_;
    if (!status.ok()) {
      fail(ErrorCode::kInternal, "cannot write {}: {}", path_.string(), status.message());
    }
  }

 private:
  int fd_;
  fs::path path_;
  int64_t position_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
};

void write_batch(StreamFile& out, const arrow::RecordBatch& batch) {
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.allow_64bit = true;  // more than 2^31 rows
  options.alignment = 64;
  options.use_threads = false;
  const auto writer = arrow::ipc::MakeStreamWriter(&out, batch.schema(), options);
  out.check(writer.status());
  out.check((*writer)->WriteRecordBatch(batch));
  out.check((*writer)->Close());
}

// Copies with reads and writes, where the kernel cannot copy between two files.
void copy_by_hand(FileBytes from, int to, const fs::path& path) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kWriteBytes, from.num_bytes)));
  while (from.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kWriteBytes, from.num_bytes));
    const ssize_t count =
        retry_interrupted([&] { return ::pread(from.fd, buffer.data(), wanted, from.begin); });
    if (count < 0) {
      fail(errno_code(errno), "cannot read {}: {}", from.path.string(), errno_text(errno));
    }
    if (count == 0) {
      fail(ErrorCode::kCorrupt, "{}: was cut short while it was read", from.path.string());
    }
    write_all(to, std::span(buffer).first(static_cast<size_t>(count)), path);
    from.begin += count;
    from.num_bytes -= count;
  }
}

}  // namespace

Spool::Spool(const fs::path& path, FileDescriptor file) : path_(path), file_(std::move(file)) {
  buffer_.reserve(kSpoolBufferBytes);
}

Spool::Spool(const fs::path& path) : Spool(path, create_new(path)) { ::unlink(path.c_str()); }

Spool Spool::named(const fs::path& path) {
  FileDescriptor file = open_or_create(path);
  if (::ftruncate(file.get(), 0) != 0) {
    fail(errno_code(errno), "cannot empty {}: {}", path.string(), errno_text(errno));
  }
  return {path, std::move(file)};
}

Spool Spool::inside(const fs::path& path, int64_t begin) {
  FileDescriptor file = open_to_change(path);
  if (::lseek(file.get(), begin, SEEK_SET) != begin) {
    fail(errno_code(errno), "cannot write {} at {}: {}", path.string(), begin, errno_text(errno));
  }
  return {path, std::move(file)};
}

void Spool::append(std::string_view bytes) {
  num_bytes_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kSpoolBufferBytes) flush();
  if (bytes.size() > kSpoolBufferBytes) {
    write_all(file_.get(), std::as_bytes(std::span(bytes)), path_);
  } else {
    buffer_.append(bytes);
  }
}

void Spool::flush() {
  write_all(file_.get(), std::as_bytes(std::span(buffer_)), path_);
  buffer_.clear();
}

Mapped::Mapped(const Spool& spool)
    : Buffer(map(spool.num_bytes(), PROT_READ, MAP_SHARED, spool.fd(), spool.path()),
             spool.num_bytes()) {}

Mapped::Mapped(int64_t num_bytes, const fs::path& path)
    : Buffer(map(num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, path),
             num_bytes) {}

Mapped::~Mapped() {
  if (size_ > 0) ::munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_));
}

void copy_bytes(FileBytes from, int to, const fs::path& path) {
  while (from.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kCopyBytes, from.num_bytes));
    off_t begin = from.begin;
    const ssize_t count = retry_interrupted(
        [&] { return ::copy_file_range(from.fd, &begin, to, nullptr, wanted, 0); });
    if (count <= 0) return copy_by_hand(from, to, path);  // says why, if it fails
    from.begin += count;
    from.num_bytes -= count;
  }
}

PartialFile::PartialFile(const fs::path& out)
    : out_(out), path_(unique_partial(out)), file_(create_new(path_)), is_ours_(true) {
  hold_partial(file_);
  remove_dead_partials(out);
}

PartialFile::PartialFile(const fs::path& out, fs::path taken)
    : out_(out), path_(std::move(taken)), file_(open_to_change(path_)), is_ours_(false) {}

PartialFile::~PartialFile() {
  if (is_ours_) ::unlink(path_.c_str());
}

void PartialFile::sync() const { fsync_file(fd(), path_); }

void PartialFile::commit() {
  if (::rename(path_.c_str(), out_.c_str()) != 0) {
    fail(errno_code(errno), "cannot rename {} to {}: {}", path_.string(), out_.string(),
         errno_text(errno));
  }
  is_ours_ = false;
  fsync_folder(out_.has_parent_path() ? out_.parent_path() : fs::path("."));
}

void write_arrow_stream(PartialFile& file, const arrow::RecordBatch& batch) {
  StreamFile stream(file.fd(), file.path());
  write_batch(stream, batch);
}

}  // namespace skein

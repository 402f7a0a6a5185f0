#include "skein/data/spool.h"

#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kSpoolBufferBytes = size_t{1} << 20;

FileDescriptor create(const fs::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {}: {}", path.string(), errno_text(errno));
  }
  return file;
}

const uint8_t* map(int64_t num_bytes, int protection, int flags, int fd, const fs::path& path) {
  if (num_bytes == 0) return nullptr;
  void* address = ::mmap(nullptr, static_cast<size_t>(num_bytes), protection, flags, fd, 0);
  if (address == MAP_FAILED) {
    fail(errno_code(errno), "cannot map {}: {}", path.string(), errno_text(errno));
  }
  return static_cast<const uint8_t*>(address);
}

// Where the stream goes. Buffers that are files already are not read through their addresses, which
// stand for them: `copy_buffer` copies the one that begins there, or returns false.
class StreamFile : public arrow::io::OutputStream {
 public:
  StreamFile(int fd, const fs::path& path, const CopyBuffer& copy_buffer)
      : fd_(fd), path_(path), copy_buffer_(copy_buffer) {}

  arrow::Status Write(const void* data, int64_t num_bytes) override {
    try {
      if (num_bytes > 0 && !(copy_buffer_ && copy_buffer_(data, fd_, path_))) {
        write_all(fd_, {static_cast<const std::byte*>(data), static_cast<size_t>(num_bytes)},
                  path_);
      }
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
  const CopyBuffer& copy_buffer_;
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

}  // namespace

Spool::Spool(const fs::path& path, FileDescriptor file) : path_(path), file_(std::move(file)) {
  buffer_.reserve(kSpoolBufferBytes);
}

Spool::Spool(const fs::path& path) : Spool(path, create(path, O_RDWR | O_EXCL)) {
  ::unlink(path.c_str());
}

Spool Spool::named(const fs::path& path) { return {path, create(path, O_RDWR | O_TRUNC)}; }

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

void write_arrow_stream(const fs::path& out, const arrow::RecordBatch& batch,
                        const CopyBuffer& copy_buffer) {
  const fs::path partial = unique_partial(out);
  try {
    const FileDescriptor file = create(partial, O_WRONLY | O_EXCL);
    StreamFile stream(file.get(), partial, copy_buffer);
    write_batch(stream, batch);
    fsync_file(file.get(), partial);
    if (::rename(partial.c_str(), out.c_str()) != 0) {
      fail(errno_code(errno), "cannot rename {} to {}: {}", partial.string(), out.string(),
           errno_text(errno));
    }
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
  fsync_folder(out.has_parent_path() ? out.parent_path() : fs::path("."));
}

}  // namespace skein

#include "skein/data/corpus_writer.h"

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kSpoolBufferBytes = size_t{1} << 20;
constexpr int64_t kWriteBytes = int64_t{8} << 20;
constexpr int64_t kCopyBytes = int64_t{64} << 20;

FileDescriptor create(const fs::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {}: {}", path.string(), errno_text(errno));
  }
  return file;
}

// A spool's bytes, mapped; or, without one, that many bytes that nobody may read.
class Mapped : public arrow::Buffer {
 public:
  explicit Mapped(const Spool& spool)
      : Buffer(map(spool.num_bytes(), PROT_READ, MAP_SHARED, spool.fd(), spool.path()),
               spool.num_bytes()) {}
  Mapped(int64_t num_bytes, const fs::path& path)
      : Buffer(map(num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, path),
               num_bytes) {}
  ~Mapped() override {
    if (size_ > 0) ::munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_));
  }

 private:
  static const uint8_t* map(int64_t num_bytes, int protection, int flags, int fd,
                            const fs::path& path) {
    if (num_bytes == 0) return nullptr;
    void* address = ::mmap(nullptr, static_cast<size_t>(num_bytes), protection, flags, fd, 0);
    if (address == MAP_FAILED) {
      fail(errno_code(errno), "cannot map {}: {}", path.string(), errno_text(errno));
    }
    return static_cast<const uint8_t*>(address);
  }
};

// Copies with reads and writes, where the kernel cannot copy between two files.
void copy_by_hand(int from, FileRange range, int to, const fs::path& source, const fs::path& path) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kWriteBytes, range.num_bytes)));
  while (range.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kWriteBytes, range.num_bytes));
    const ssize_t count =
        retry_interrupted([&] { return ::pread(from, buffer.data(), wanted, range.begin); });
    if (count < 0) {
      fail(errno_code(errno), "cannot read {}: {}", source.string(), errno_text(errno));
    }
    if (count == 0)
      fail(ErrorCode::kCorrupt, "{}: was cut short while it was read", source.string());
    write_all(to, std::span(buffer).first(static_cast<size_t>(count)), path);
    range.begin += count;
    range.num_bytes -= count;
  }
}

// Appends a range of the file `from` to `to`, and has the disk begin to write it.
void copy_range(int from, FileRange range, int to, const fs::path& source, const fs::path& path) {
  while (range.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kCopyBytes, range.num_bytes));
    off_t begin = range.begin;
    const ssize_t count =
        retry_interrupted([&] { return ::copy_file_range(from, &begin, to, nullptr, wanted, 0); });
    if (count <= 0) return copy_by_hand(from, range, to, source, path);  // says why, if it fails
    range.begin += count;
    range.num_bytes -= count;
    ::sync_file_range(to, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

// Where the stream goes. Buffers that are files already are not read through their addresses, which
// stand for them: `copy_buffer` copies the one that begins there, or returns false.
class StreamFile : public arrow::io::OutputStream {
 public:
  StreamFile(int fd, const fs::path& path, std::function<bool(const void*)> copy_buffer)
      : fd_(fd), path_(path), copy_buffer_(std::move(copy_buffer)) {}

  arrow::Status Write(const void* data, int64_t num_bytes) override {
    try {
      if (num_bytes > 0 && !copy_buffer_(data)) {
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
  std::function<bool(const void*)> copy_buffer_;
  int64_t position_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
};

void write_stream(StreamFile& out, std::shared_ptr<arrow::Buffer> offsets,
                  std::shared_ptr<arrow::Buffer> text, int64_t num_documents) {
  const auto schema = arrow::schema({arrow::field("text", arrow::large_utf8())});
  auto column = arrow::ArrayData::Make(arrow::large_utf8(), num_documents,
                                       {nullptr, std::move(offsets), std::move(text)}, 0);
  const auto batch = arrow::RecordBatch::Make(
      schema, num_documents, std::vector<std::shared_ptr<arrow::ArrayData>>{column});
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.allow_64bit = true;  // more than 2^31 documents
  options.alignment = 64;
  options.use_threads = false;
  const auto writer = arrow::ipc::MakeStreamWriter(&out, schema, options);
  out.check(writer.status());
  out.check((*writer)->WriteRecordBatch(*batch));
  out.check((*writer)->Close());
}

}  // namespace

Spool::Spool(const fs::path& path, FileDescriptor file, bool writes_early)
    : path_(path), file_(std::move(file)), writes_early_(writes_early) {
  buffer_.reserve(kSpoolBufferBytes);
}

Spool::Spool(const fs::path& path) : Spool(path, create(path, O_RDWR | O_EXCL), false) {
  ::unlink(path.c_str());
}

Spool Spool::named(const fs::path& path) { return {path, create(path, O_RDWR | O_TRUNC), true}; }

void Spool::append(std::string_view bytes) {
  num_bytes_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kSpoolBufferBytes) flush();
  if (bytes.size() > kSpoolBufferBytes) {
    write(bytes);
  } else {
    buffer_.append(bytes);
  }
}

void Spool::flush() {
  write(buffer_);
  buffer_.clear();
}

void Spool::write(std::string_view bytes) {
  write_all(file_.get(), std::as_bytes(std::span(bytes)), path_);
  if (writes_early_) ::sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

CorpusWriter::CorpusWriter(const fs::path& out)
    : out_((out.has_parent_path() ? fs::create_directories(out.parent_path()) : false, out)),
      text_(unique_partial(out)),
      offsets_(unique_partial(out)),
      ranges_(unique_partial(out)),
      files_{text_.path()} {
  append_offset();
}

void CorpusWriter::append(std::string_view text) {
  append(FileRange{0, text_.num_bytes(), static_cast<int64_t>(text.size())});
  text_.append(text);
}

int64_t CorpusWriter::add_file(const fs::path& path) {
  files_.push_back(path);
  return static_cast<int64_t>(files_.size()) - 1;
}

void CorpusWriter::append(const FileRange& text) {
  if (text.file == range_.file && text.begin == range_.begin + range_.num_bytes) {
    range_.num_bytes += text.num_bytes;
  } else {
    flush_range();
    range_ = text;
  }
  num_bytes_ += text.num_bytes;
  append_offset();
  ++num_documents_;
}

void CorpusWriter::append_offset() {
  offsets_.append({reinterpret_cast<const char*>(&num_bytes_), sizeof(num_bytes_)});
}

void CorpusWriter::flush_range() {
  if (range_.num_bytes > 0) {
    ranges_.append({reinterpret_cast<const char*>(&range_), sizeof(range_)});
  }
  range_ = {};
}

void CorpusWriter::copy_text(int to, const fs::path& path) const {
  const Mapped mapped(ranges_);
  const std::span ranges(reinterpret_cast<const FileRange*>(mapped.data()),
                         static_cast<size_t>(mapped.size()) / sizeof(FileRange));
  FileDescriptor opened;
  int64_t opened_file = 0;
  for (const FileRange& range : ranges) {
    const fs::path& source = files_[static_cast<size_t>(range.file)];
    if (range.file != 0 && range.file != opened_file) {
      opened = FileDescriptor(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
      opened_file = range.file;
      if (opened.get() < 0) {
        fail(errno_code(errno), "cannot open {}: {}", source.string(), errno_text(errno));
      }
    }
    copy_range(range.file == 0 ? text_.fd() : opened.get(), range, to, source, path);
  }
}

void CorpusWriter::commit() {
  flush_range();
  text_.flush();
  offsets_.flush();
  ranges_.flush();
  const fs::path partial = unique_partial(out_);
  try {
    const FileDescriptor file = create(partial, O_WRONLY | O_EXCL);
    const auto text = std::make_shared<Mapped>(num_bytes_, partial);
    const auto offsets = std::make_shared<Mapped>(offsets_);
    StreamFile stream(file.get(), partial, [&](const void* data) {
      if (data == offsets->data()) {
        copy_range(offsets_.fd(), {0, 0, offsets_.num_bytes()}, file.get(), offsets_.path(),
                   partial);
      } else if (data == text->data()) {
        copy_text(file.get(), partial);
      } else {
        return false;
      }
      return true;
    });
    write_stream(stream, offsets, text, num_documents_);
    fsync_file(file.get(), partial);
    if (::rename(partial.c_str(), out_.c_str()) != 0) {
      fail(errno_code(errno), "cannot rename {} to {}: {}", partial.string(), out_.string(),
           errno_text(errno));
    }
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
  fsync_folder(out_.has_parent_path() ? out_.parent_path() : fs::path("."));
}

}  // namespace skein

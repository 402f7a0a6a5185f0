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
#include <optional>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kSpoolBufferBytes = size_t{1} << 20;
constexpr int64_t kWriteBytes = int64_t{8} << 20;

FileDescriptor create(const fs::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {}: {}", path.string(), errno_text(errno));
  }
  return file;
}

// A spool's bytes as an Arrow buffer.
class MappedSpool : public arrow::Buffer {
 public:
  explicit MappedSpool(const Spool& spool)
      : Buffer(map(spool), spool.num_bytes()), mapped_bytes_(static_cast<size_t>(size_)) {}
  ~MappedSpool() override {
    if (mapped_bytes_ > 0) ::munmap(const_cast<uint8_t*>(data_), mapped_bytes_);
  }

 private:
  static const uint8_t* map(const Spool& spool) {
    if (spool.num_bytes() == 0) return nullptr;
    void* address = ::mmap(nullptr, static_cast<size_t>(spool.num_bytes()), PROT_READ, MAP_SHARED,
                           spool.fd(), 0);
    if (address == MAP_FAILED) {
      fail(errno_code(errno), "cannot map {}: {}", spool.path().string(), errno_text(errno));
    }
    return static_cast<const uint8_t*>(address);
  }

  size_t mapped_bytes_;
};

// Writes to a file, and releases the source's pages as they are written, so that the corpus never
// counts as resident memory.
class StreamFile : public arrow::io::OutputStream {
 public:
  StreamFile(int fd, const fs::path& path) : fd_(fd), path_(path) {}

  arrow::Status Write(const void* data, int64_t num_bytes) override {
    const auto* bytes = static_cast<const std::byte*>(data);
    for (int64_t done = 0; done < num_bytes;) {
      const int64_t count = std::min(kWriteBytes, num_bytes - done);
      try {
        write_all(fd_, {bytes + done, static_cast<size_t>(count)}, path_);
      } catch (const Error& error) {
        error_ = error;
        return arrow::Status::IOError(error.what());
      }
      if (num_bytes > kWriteBytes) release(bytes + done, count);
      done += count;
      position_ += count;
    }
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
  // Only a spool is larger than one write; its pages can be read again from the file.
  static void release(const std::byte* data, int64_t num_bytes) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + num_bytes) / page * page;
    if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

  int fd_;
  fs::path path_;
  int64_t position_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
};

void write_stream(StreamFile& out, const Spool& text, const Spool& offsets, int64_t num_documents) {
  const auto schema = arrow::schema({arrow::field("text", arrow::large_utf8())});
  auto column = arrow::ArrayData::Make(
      arrow::large_utf8(), num_documents,
      {nullptr, std::make_shared<MappedSpool>(offsets), std::make_shared<MappedSpool>(text)}, 0);
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

Spool::Spool(const fs::path& path) : path_(path), file_(create(path, O_RDWR)) {
  ::unlink(path.c_str());
  buffer_.reserve(kSpoolBufferBytes);
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

CorpusWriter::CorpusWriter(const fs::path& out)
    : out_((out.has_parent_path() ? fs::create_directories(out.parent_path()) : false, out)),
      text_(unique_partial(out)),
      offsets_(unique_partial(out)) {
  append_offset();
}

void CorpusWriter::append(std::string_view text) {
  text_.append(text);
  append_offset();
  ++num_documents_;
}

void CorpusWriter::append_offset() {
  const int64_t offset = text_.num_bytes();
  offsets_.append({reinterpret_cast<const char*>(&offset), sizeof(offset)});
}

void CorpusWriter::commit() {
  text_.flush();
  offsets_.flush();
  const fs::path partial = unique_partial(out_);
  try {
    const FileDescriptor file = create(partial, O_WRONLY);
    StreamFile stream(file.get(), partial);
    write_stream(stream, text_, offsets_, num_documents_);
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

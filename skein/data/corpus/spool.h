// Bytes that are appended to a file, and an Arrow stream made of them.
//
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file
// Memory   a MiB an object; mapped bytes count as resident while they are read
// Threads  an object: one at a time
#pragma once

#include <arrow/buffer.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

// Appends to a temporary file without a name, so that a crash leaves nothing behind.
class Spool {
 public:
  explicit Spool(const fs::path& path);
  // A file that keeps its name, and replaces one of that name.
  static Spool named(const fs::path& path);
  // Writes into a file that is there, from `begin` on.
  static Spool inside(const fs::path& path, int64_t begin);
  void append(std::string_view bytes);
  void flush();
  int64_t num_bytes() const { return num_bytes_; }  // that were appended
  int fd() const { return file_.get(); }
  const fs::path& path() const { return path_; }

 private:
  Spool(const fs::path& path, FileDescriptor file);

  fs::path path_;
  FileDescriptor file_;
  std::string buffer_;
  int64_t num_bytes_ = 0;
};

// A spool's bytes, mapped; or, without one, that many bytes that nobody may read.
class Mapped : public arrow::Buffer {
 public:
  explicit Mapped(const Spool& spool);  // that was flushed
  Mapped(int64_t num_bytes, const fs::path& path);
  ~Mapped() override;
};

// Bytes of a file.
struct FileBytes {
  int fd = -1;
  int64_t begin = 0;
  int64_t num_bytes = 0;
  const fs::path& path;
};
// Writes them to the file `to` where it stands, within the kernel where it can.
void copy_bytes(FileBytes from, int to, const fs::path& path);

// A file beside `out` that takes its name when it is whole. One that is made here is removed if it
// does not come to that.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& out);         // makes one (unique_partial)
  PartialFile(const fs::path& out, fs::path taken);  // that is there already
  ~PartialFile();
  int fd() const { return file_.get(); }
  const fs::path& path() const { return path_; }
  void sync() const;
  // After sync(): needs no room on the disk.
  void commit();

 private:
  fs::path out_, path_;
  FileDescriptor file_;
  bool is_ours_;
};

// Writes an Arrow IPC stream with this one batch.
void write_arrow_stream(PartialFile& file, const arrow::RecordBatch& batch);

}  // namespace skein

// A file of a checkpoint that is read in ranges, by ordinary reads so that a failing disk is an
// error and not a signal, or by requests to the bucket that holds it.
//
// Errors   Error{kNotFound | kIo} naming the path; Error{kCorrupt} for a file that ends before what
//          is read of it
// Threads  several threads may read
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

class ObjectRanges;

class StoredFile {
 public:
  explicit StoredFile(const fs::path& path);  // of a file system, or s3://…
  StoredFile(FileDescriptor file, const fs::path& path);
  // `num_bytes`: how many it must have by what is known; another size is Error{kCorrupt}. Of an
  // object that is found out by reading, since its size is a request.
  StoredFile(const fs::path& path, int64_t num_bytes);
  ~StoredFile();
  StoredFile(StoredFile&&) noexcept;

  int64_t num_bytes() const { return num_bytes_; }
  void read(int64_t begin, std::span<std::byte> target) const;
  // The file as text; at most the first `most` bytes of it.
  std::string text(int64_t most = INT64_MAX) const;

 private:
  fs::path path_;
  FileDescriptor file_;
  std::unique_ptr<ObjectRanges> object_;  // null: a file
  int64_t num_bytes_ = 0;
};

// Whether there is a file or a folder of that name, or an object, or objects under it. Throws
// Error{kIo} where that cannot be found out.
bool is_stored(const fs::path& path);

}  // namespace skein

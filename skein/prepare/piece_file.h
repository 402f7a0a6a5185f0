// A file of a piece, which has its name only once it is whole: machines that work in one folder,
// and even on one piece, never see a part of each other's file, nor write into it. A rename does
// it, so that any file system will do.
//
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file
// Memory   a MiB
// Threads  an object: one at a time
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "skein/base/numbers/hash.h"
#include "skein/data/corpus/spool.h"

namespace skein {

class PieceFile {
 public:
  explicit PieceFile(const fs::path& path);
  PieceFile(const PieceFile&) = delete;
  PieceFile& operator=(const PieceFile&) = delete;
  ~PieceFile();  // removes what was not finished

  void append(std::string_view bytes);
  int64_t num_bytes() const { return num_bytes_; }

  // What was appended goes to the place of `other` in its file, within the kernel, and so does what
  // will be: this file gets no name.
  void go_on_in(Spool other);
  // What was appended is in the file `fd`.
  void flush() { spool_->flush(); }
  int fd() const { return spool_->fd(); }

  // Closes the file, so that other machines see its bytes, and then gives it its name. Returns
  // xxh3-128 of them.
  std::string finish();

 private:
  fs::path path_, partial_;  // partial: empty if it goes on in another file
  std::optional<Spool> spool_;
  Xxh3Stream hash_;
  int64_t num_bytes_ = 0;
};

// xxh3-128 of bytes of a file, or of all.
std::string hash_of(const MappedFile& file, int64_t begin, int64_t num_bytes);
std::string hash_of_file(const fs::path& path);

}  // namespace skein

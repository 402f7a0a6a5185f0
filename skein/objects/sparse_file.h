// A temporary file without a name, of any length, of which only what is written takes room.
//
// Errors   Error{kIo | kNoSpace | kUnsupported} naming the folder
// Threads  several may write, punch and map at once; grow() is for one at a time
#pragma once

#include <cstdint>
#include <span>

#include "skein/base/files/file.h"

namespace skein {

class SparseFile {
 public:
  // A file system that cannot take single blocks back from a file is refused.
  explicit SparseFile(const fs::path& folder);  // empty: TMPDIR, else /tmp

  int64_t num_bytes() const { return num_bytes_; }
  // Lengthens the file and returns where the new bytes begin.
  int64_t grow(int64_t num_bytes);

  void write(int64_t at, std::span<const char> bytes);
  // Gives the room back: these bytes read as zeros.
  void punch(int64_t at, int64_t num_bytes);
  // Bytes of the file in memory, which follow what is written. `at`: a multiple of the page size.
  const std::byte* map(int64_t at, int64_t num_bytes) const;

 private:
  fs::path folder_;
  FileDescriptor file_;
  int64_t num_bytes_ = 0;
};

}  // namespace skein

// Reads ranges of an object: what is wanted of a large one, parts of it at once.
//
// Memory   64 MiB while a range of more than one part (8 MiB) is read
// Errors   as store.h; Error{kCorrupt} for an object that ends before the range does
// Threads  several threads may read
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "skein/objects/url.h"

namespace arrow::io {
class RandomAccessFile;
}

namespace skein {

class ObjectRanges {
 public:
  explicit ObjectRanges(const ObjectUrl& url);
  // Of an object whose size is known: saves a request.
  ObjectRanges(const ObjectUrl& url, int64_t num_bytes);

  int64_t num_bytes() const { return num_bytes_; }
  void read(int64_t begin, std::span<std::byte> target) const;

 private:
  std::string url_;
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  int64_t num_bytes_ = 0;
};

}  // namespace skein

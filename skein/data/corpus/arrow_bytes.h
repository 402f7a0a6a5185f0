// The bytes of an Arrow file: in memory, or an object of which only what is read is fetched.
//
// Errors   those of the object's store, through Arrow: rethrow() throws what a read met
// Threads  one caller at a time
#pragma once

#include <arrow/io/type_fwd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/objects/cache.h"

namespace skein {

class ArrowBytes {
 public:
  explicit ArrowBytes(std::span<const std::byte> memory) : bytes_(memory) {}
  explicit ArrowBytes(CachedObject& object) : bytes_(object.bytes()), object_(&object) {}

  std::span<const std::byte> all() const { return bytes_; }
  CachedObject* object() const { return object_; }  // null: all bytes are in memory
  // A copy of up to so many bytes.
  std::string copy(int64_t begin, int64_t num_bytes) const;

  // All bytes from the first on. Of an object, Arrow is given addresses of the bodies of messages,
  // which are not fetched, and the bytes of all else, which stay for as long as the stream.
  std::shared_ptr<arrow::io::InputStream> stream();
  // What the object's store said when a read of a stream failed, if one did.
  void rethrow() const;

 private:
  class ObjectStream;

  std::span<const std::byte> bytes_;
  CachedObject* object_ = nullptr;
  std::optional<Error> error_;
};

}  // namespace skein

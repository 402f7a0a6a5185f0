// Objects of S3, written and removed.
//
// Visible  an object appears, or replaces the one of its name, whole and at once, when finish() or
//          put_object() returns. A process that dies before leaves nothing that can be seen; parts
//          that it has sent stay with the store until a rule of the bucket removes them
//          (AbortIncompleteMultipartUpload)
// Memory   of a writer, up to 80 MiB: parts of 10 MiB on their way
// Errors   as store.h: kNotFound for a bucket that is not there, kIo
// Threads  a writer by one thread at a time; functions may be called at once
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "skein/base/files/file.h"
#include "skein/objects/url.h"

namespace arrow::io {
class OutputStream;
}

namespace skein {

class ObjectWriter {
 public:
  explicit ObjectWriter(const ObjectUrl& url);
  ~ObjectWriter();  // what was not finished is dropped
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  ObjectUrl url_;
  std::shared_ptr<arrow::io::OutputStream> stream_;
  int64_t num_bytes_ = 0;
  int64_t num_on_their_way_ = 0;  // bytes, at most
};

void put_object(const ObjectUrl& url, std::string_view bytes);

// The same for a file, which write_file_atomic() writes. Errors: also its
void write_file_or_object(const fs::path& path, std::string_view bytes);

// It is no error if it is not there.
void remove_object(const ObjectUrl& url);

// All objects whose names begin with the URL and a slash, in no order.
void remove_objects_under(const ObjectUrl& url);

}  // namespace skein

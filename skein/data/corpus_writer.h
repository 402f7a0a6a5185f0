// Writes a corpus that may be larger than memory: docs/corpus_format.md.
//
// An Arrow record batch begins with the sizes of its buffers, and the offsets come before the text;
// neither is known before the last document. So documents are spooled to two unnamed temporary
// files beside the output, and copied into the stream at the end.
//
// Memory   a few MiB, whatever the size of the corpus; disk: twice the text until commit() returns
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file; the output is then unchanged
// Threads  one at a time
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "skein/base/file.h"

namespace skein {

// Appends to a temporary file without a name, so that a crash leaves nothing behind.
class Spool {
 public:
  explicit Spool(const fs::path& path);
  void append(std::string_view bytes);
  void flush();
  int64_t num_bytes() const { return num_bytes_; }
  int fd() const { return file_.get(); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  FileDescriptor file_;
  std::string buffer_;
  int64_t num_bytes_ = 0;
};

class CorpusWriter {
 public:
  // Creates the folder of `out` if it is missing.
  explicit CorpusWriter(const fs::path& out);

  // Adds a document. The caller must have checked that it is UTF-8.
  void append(std::string_view text);

  // Writes and fsyncs a file beside `out` (unique_partial), then renames it. Call once.
  void commit();

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return text_.num_bytes(); }

 private:
  void append_offset();

  fs::path out_;
  Spool text_;
  Spool offsets_;
  int64_t num_documents_ = 0;
};

}  // namespace skein

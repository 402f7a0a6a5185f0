// Writes a corpus that may be larger than memory: docs/corpus_format.md.
//
// An Arrow record batch begins with the sizes of its buffers, and the offsets come before the text;
// neither is known before the last document. So documents are spooled to unnamed temporary files
// beside the output, and copied into the stream at the end, within the kernel. Text that lies in a
// file already is not spooled: it is copied from there.
//
// Memory   a few MiB, whatever the size of the corpus; disk: twice the text until commit() returns
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file; the output is then unchanged
// Threads  one at a time
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/file.h"

namespace skein {

// Appends to a temporary file without a name, so that a crash leaves nothing behind.
class Spool {
 public:
  explicit Spool(const fs::path& path);
  // A file that keeps its name, and replaces one of that name. Bytes are on their way to the disk
  // early, so that an fsync at the end has little to wait for.
  static Spool named(const fs::path& path);
  void append(std::string_view bytes);
  void flush();
  int64_t num_bytes() const { return num_bytes_; }
  int fd() const { return file_.get(); }
  const fs::path& path() const { return path_; }

 private:
  Spool(const fs::path& path, FileDescriptor file, bool writes_early);
  void write(std::string_view bytes);

  fs::path path_;
  FileDescriptor file_;
  bool writes_early_;
  std::string buffer_;
  int64_t num_bytes_ = 0;
};

// Bytes of a file; `file` is from CorpusWriter::add_file().
struct FileRange {
  int64_t file = 0;
  int64_t begin = 0;
  int64_t num_bytes = 0;
};

class CorpusWriter {
 public:
  // Creates the folder of `out` if it is missing.
  explicit CorpusWriter(const fs::path& out);

  // Adds a document. The caller must have checked that it is UTF-8.
  void append(std::string_view text);

  // The same for a text that lies in a file, which must stay as it is until commit() returns.
  int64_t add_file(const fs::path& path);
  void append(const FileRange& text);

  // Writes and fsyncs a file beside `out` (unique_partial), then renames it. Call once.
  void commit();

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  void append_offset();
  void flush_range();
  void copy_text(int to, const fs::path& path) const;

  fs::path out_;
  Spool text_;
  Spool offsets_;
  Spool ranges_;                 // of text, in order: FileRange
  FileRange range_;              // the last one, which may still grow
  std::vector<fs::path> files_;  // the first one is text_
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

}  // namespace skein

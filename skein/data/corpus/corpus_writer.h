// Writes a corpus that may be larger than memory: docs/corpus_format.md.
//
// An Arrow record batch begins with the sizes of its buffers, which are known behind the last
// document. So the file begins with room for that, then comes the text, and the offsets come last.
// Documents are spooled to an unnamed temporary file beside the output, or lie in files already,
// and are copied to their place at the end, within the kernel. A file that has the text as the
// corpus wants it becomes the corpus, and nothing is copied: take_file().
//
// Memory   a few MiB, whatever the size of the corpus; disk: what is copied lies there twice until
//          finish() returns
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file; the output is then unchanged
// Threads  one at a time
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/corpus/corpus.h"
#include "skein/data/corpus/spool.h"

namespace skein {

// Where the text begins in the file of a corpus.
constexpr int64_t kCorpusTextBegin = 4096;

// Bytes of a file; `file` is from CorpusWriter::add_file().
struct FileRange {
  int64_t file = 0;
  int64_t begin = 0;
  int64_t num_bytes = 0;
};

class CorpusSourcesWriter;

class CorpusWriter {
 public:
  // Creates the folder of `out` if it is missing. `shard_of`: shard_set.h; empty: it does not say.
  // `has_spans`: the corpus has the column `loss_spans` (loss_spans.h).
  explicit CorpusWriter(const fs::path& out, std::string shard_of = "", bool has_spans = false);

  // Adds a document. The caller must have checked that it is UTF-8, and that spans are in order.
  void append(std::string_view text, std::span<const ByteRange> spans = {});

  // The same for a text that lies in a file, which must stay as it is until finish() returns.
  int64_t add_file(const fs::path& path);
  void append(const FileRange& text, std::span<const ByteRange> spans = {});

  // A file that commit() may rename to `out`. It does where that is possible and the documents are
  // all that lies in it behind kCorpusTextBegin, in this order; what comes later is cut off.
  int64_t take_file(const fs::path& path);

  // Writes and fsyncs a file beside `out` (unique_partial), unless it takes one. Call once.
  void finish();
  // Gives it the name, after finish().
  void commit();

  const fs::path& out() const { return out_; }

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  void append_offset();
  void append_spans(std::span<const ByteRange> spans);
  void flush_range();
  bool takes_file() const;
  void write(int to, const fs::path& path, bool has_text) const;
  void copy_text(int to, const fs::path& path) const;

  fs::path out_;
  std::string shard_of_;
  Spool text_;
  Spool offsets_;
  Spool ranges_;                 // of text, in order: FileRange
  FileRange range_;              // the last one, which may still grow
  std::vector<fs::path> files_;  // the first one is text_
  int64_t taken_file_ = -1;
  struct Spans {
    Spool offsets;  // int64 × (documents + 1), in values
    Spool values;   // int64: beginnings and ends
    int64_t num_values = 0;
  };
  std::optional<Spans> spans_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
  std::optional<PartialFile> finished_;
};

// A corpus and its sources, the corpus last: whoever finds it finds its sources. One that is
// replaced goes before, when both are written and synced: nobody finds it with sources of another.
void commit_with_sources(CorpusWriter& corpus, CorpusSourcesWriter& sources);

}  // namespace skein

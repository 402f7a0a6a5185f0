// A corpus: one column of documents in an Arrow IPC file, memory-mapped and read without copying.
//
// Format   docs/corpus_format.md: the Arrow IPC stream that `skein data ingest` and Hugging Face
//          `datasets` write. Also read: the IPC file ("Feather v2") format, several record batches,
//          `utf8` instead of `large_utf8`; columns other than `text` are ignored. Compressed
//          buffers cannot be mapped: they are decoded when that takes no more than 64 MiB, and
//          refused otherwise.
// Errors   Error{kNotFound | kIo | kInvalid | kCorrupt | kUnsupported} naming the file. The file is
//          untrusted until its offsets have been checked, once, when it is opened; whether the text
//          is UTF-8 is not checked here (ingest does).
// Threads  several threads may call const functions at once. The views point into the mapping and
//          live as long as the corpus.
// Cost     opening reads the offsets (8 bytes per document), not the text; document() is a binary
//          search over the record batches (ingest writes one).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "skein/base/file.h"

namespace skein {

class Corpus {
 public:
  explicit Corpus(const fs::path& path);
  Corpus(Corpus&&) noexcept;
  Corpus& operator=(Corpus&&) noexcept;
  ~Corpus();

  // The corpus in `bytes`, which must outlive it; `name` replaces the path in errors.
  static Corpus from_bytes(std::span<const std::byte> bytes, const fs::path& name);

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }  // of text, all documents together

  // 0 <= index < num_documents(). A null in the column is an empty document.
  std::string_view document(int64_t index) const;

  // Drops text that was read from this process's resident memory (MappedFile::forget), since a
  // corpus may be larger than memory. Works by windows, when the text ends in another window than
  // it began in, because short documents follow one another. forget_all() also drops the offsets.
  void forget(std::string_view text) const;
  void forget_all() const { file_.forget(file_.bytes()); }

  const fs::path& path() const { return path_; }

 private:
  struct Chunk;  // one record batch's text column
  Corpus();
  void open(std::span<const std::byte> bytes);

  fs::path path_;
  MappedFile file_;
  std::shared_ptr<void> memory_;  // holds decoded buffers
  std::vector<Chunk> chunks_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

// Opens the corpus that a person named by `setting` ("data.train"). A missing file, or one that is
// not a corpus, is Error{kUsage} naming the setting.
Corpus open_corpus(const fs::path& path, const std::string& setting);

}  // namespace skein

// A corpus: one column of documents in Arrow IPC files, memory-mapped and read without copying, or
// in objects of a store (s3://…), of which what is read is fetched.
//
// Format   docs/corpus_format.md: the Arrow IPC stream that `skein data ingest` and Hugging Face
//          `datasets` write, or a folder of such files. Also read: the IPC file ("Feather v2")
//          format, several record batches, `utf8` instead of `large_utf8`; columns other than
//          `text` are ignored. Compressed buffers cannot be mapped: they are decoded when that
//          takes no more than 64 MiB, and refused otherwise.
// Errors   Error{kNotFound | kIo | kInvalid | kCorrupt | kUnsupported} naming the file. Files are
//          untrusted: a document's offsets are checked when it is read. All of them are checked
//          once, when the corpus is opened, if it has at most kCheckedDocuments and lies in files.
//          Whether the text is UTF-8 is not checked here (ingest does). An object that is replaced
//          while it is read is kCorrupt.
// Threads  several threads may call const functions at once. Texts must not outlive the corpus.
// Cost     opening reads the header of every file, on several threads; with more documents than
//          kCheckedDocuments nothing else, whatever the size. An object is asked for about 7 times,
//          and at most 256 KiB of it is fetched. document() searches the files and record batches,
//          find() the offsets, too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/data/corpus/held_text.h"

namespace arrow {
class MemoryPool;
}

namespace skein {

// Where a document lies in the text of a corpus, all documents laid end to end.
struct DocumentPlace {
  int64_t document = 0;
  int64_t begin = 0;  // bytes of text before it
};

// Bytes [begin, end) of the text of a corpus, all documents laid end to end.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

class Corpus {
 public:
  static constexpr int64_t kCheckedDocuments = int64_t{4} << 20;

  // A file, a folder, an object or what lies under a name in a store: corpus_files.h says which
  // files that gives. Objects go through `cache`; null: one of its own.
  explicit Corpus(const fs::path& path, std::shared_ptr<ObjectCache> cache = nullptr);
  Corpus(Corpus&&) noexcept;
  ~Corpus();

  // The corpus in `bytes`, which must outlive it; `name` replaces the path in errors.
  static Corpus from_bytes(std::span<const std::byte> bytes, const fs::path& name);
  // The corpus in one object, which `reader` reads.
  static Corpus from_object(std::unique_ptr<RangeReader> reader,
                            std::shared_ptr<ObjectCache> cache);

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }  // of text, all documents together

  // 0 <= index < num_documents(). A null in the column is an empty document.
  HeldText document(int64_t index) const;
  int64_t document_bytes(int64_t index) const;  // its length; text is not read
  // The part of a document from `begin` on, of at most `num_bytes` bytes.
  HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const;

  // Whether all of its files say which bytes of a document count for the loss (loss_spans.h).
  bool has_loss_spans() const;
  // Those bytes, in order.
  std::vector<ByteRange> loss_spans(int64_t index) const;

  // The document that holds byte `position`, 0 <= position < num_bytes().
  DocumentPlace find(int64_t position) const;

  // The file that holds a document, the document's number in it, and what the file holds in all.
  struct Home {
    const fs::path& file;
    int64_t document;
    int64_t num_documents, num_bytes;
  };
  Home home(int64_t index) const;

  // Asks for bytes of all text, and for the offsets of its first and last document, which will be
  // read soon. Returns at once; of mapped files it does nothing.
  void read_ahead(const ByteRange& range) const;

  // Drops text that was read from this process's resident memory (MappedFile::forget), since a
  // corpus may be larger than memory. Works by windows, when the text ends in another window than
  // it began in, because short documents follow one another, and from time to time drops the whole
  // file, with pages that documents share and pages of offsets. forget_all() drops every file. Of
  // objects both do nothing: the cache drops what was not used for longest.
  void forget(std::string_view text) const;
  void forget_all() const;

  // Looks at the files that were read since the last call. Throws Error{kInvalid} for one that was
  // changed since it was opened. Returns what is to be said of the first whose name is gone or is
  // another file's by now, "web.arrow was removed", or nothing: the corpus is what was opened.
  std::string check_unchanged() const;

  const fs::path& path() const { return path_; }

 private:
  struct File;
  struct Chunk;  // one record batch's text column
  Corpus();
  void open_files();
  void open_file(File& file, arrow::MemoryPool* pool);
  void number_documents();
  const Chunk& chunk_of(int64_t index) const;
  const Chunk& chunk_at(int64_t position) const;

  fs::path path_;
  std::shared_ptr<void> memory_;        // holds decoded buffers
  std::shared_ptr<ObjectCache> cache_;  // of objects; null: the corpus lies in files
  std::vector<File> files_;
  std::vector<const File*> files_by_address_;
  std::vector<Chunk> chunks_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

// Opens the corpus that a person named by `setting` ("data.train"). A missing file, or one that is
// not a corpus, is Error{kUsage} naming the setting.
Corpus open_corpus(const fs::path& path, const std::string& setting,
                   std::shared_ptr<ObjectCache> cache = nullptr);

}  // namespace skein

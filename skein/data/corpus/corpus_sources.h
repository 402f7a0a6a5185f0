// Where the documents of a corpus came from: `<corpus>.sources` beside it, a file or an object.
//
// Format   docs/corpus_format.md: runs of documents that are consecutive records of one source.
//          A corpus without such a file is as good a corpus.
// Errors   Error{kNotFound | kIo | kInvalid | kCorrupt} naming the file, which is untrusted
// Cost     opening reads the names of the sources, not the runs, but fetches the whole of an
//          object; find() is a binary search
// Threads  several threads may call const functions at once
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "skein/base/files/file.h"
#include "skein/data/corpus/spool.h"

namespace skein {

inline constexpr std::string_view kSourcesSuffix = ".sources";
fs::path sources_of(const fs::path& corpus);

struct SourceRecord {
  std::string_view path;
  int64_t record = 0;  // in that file, from 1: a line of JSONL, a row of a table, …
};

class CorpusSources {
 public:
  // The sources of `corpus`, if there is such a file beside it.
  static std::optional<CorpusSources> beside(const fs::path& corpus);

  explicit CorpusSources(const fs::path& path);
  CorpusSources(CorpusSources&&) noexcept;
  ~CorpusSources();

  // 0 <= document < num_documents().
  SourceRecord find(int64_t document) const;

  int64_t num_documents() const { return num_documents_; }
  // Throws Error{kInvalid} unless it was written with `corpus`, by what the two hold.
  void check_is_of(const fs::path& corpus, int64_t num_documents, int64_t num_bytes) const;

  // What the command that wrote it says of inputs and options, to find its own work again; may be
  // empty.
  const std::string& made_from() const { return made_from_; }

  int64_t num_runs() const;
  int64_t num_sources() const;

 private:
  struct Table;
  CorpusSources(const fs::path& path, MappedFile file);

  fs::path path_;
  MappedFile file_;
  std::unique_ptr<Table> table_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = -1;  // of text; -1: it does not say
  std::string made_from_;
};

// Writes the file, for documents in order.
// Memory   the names of the sources
class CorpusSourcesWriter {
 public:
  explicit CorpusSourcesWriter(const fs::path& corpus, std::string made_from = "");
  void append(const SourceRecord& source);
  // Writes and fsyncs a file beside it. `num_bytes`: of the corpus's text. Call once.
  void finish(int64_t num_bytes);
  // Gives it the name, after finish().
  void commit() { finished_->commit(); }

 private:
  int32_t source_index(std::string_view path);

  fs::path out_;
  std::string made_from_;
  Spool first_documents_, sources_, first_records_;  // a column each
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> indices_;
  int32_t last_source_ = -1;
  int64_t next_record_ = 0;  // that continues the last run
  int64_t num_documents_ = 0;
  std::optional<PartialFile> finished_;
};

}  // namespace skein

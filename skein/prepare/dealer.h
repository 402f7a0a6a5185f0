// Divides documents between the training and the validation corpus; see IngestOptions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/prepare/piece.h"

namespace skein {

// Where to cut `text` so that about `position` bytes come before the cut: after a newline,
// otherwise between two characters. Neither part is empty; nothing if that is impossible. `text` is
// UTF-8.
std::optional<size_t> cut_near(std::string_view text, size_t position);

// With each corpus goes the file of its sources. Texts are not copied before commit(), but from
// where they lie then.
class Dealer {
 public:
  // `validation_out` empty: everything is for training. `made_from`: CorpusSources. `shard_of`:
  // CorpusWriter.
  Dealer(const fs::path& out, const fs::path& validation_out, const std::string& made_from,
         double validation_fraction, const std::string& shard_of = "", bool has_spans = false);

  // The file in which the texts of the following documents lie; it may become the training corpus.
  void begin_file(const fs::path& texts);
  void add(const PieceDocument& document);

  // Throws Error{kInvalid} if one of the corpora would be empty.
  void commit();

  const CorpusWriter& training() const { return training_.corpus; }
  const CorpusWriter* validation() const { return validation_ ? &validation_->corpus : nullptr; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  struct DealtCorpus {
    DealtCorpus(const fs::path& out, const std::string& made_from, bool has_spans,
                const std::string& shard_of = "")
        : corpus(out, shard_of, has_spans), sources(out, made_from) {}
    CorpusWriter corpus;
    CorpusSourcesWriter sources;
  };
  // A document, or a part of one, and where it lies.
  struct DocumentPart {
    FileRange range;
    std::string source;
    int64_t record = 0;
    std::vector<ByteRange> spans;
  };

  static void append(DealtCorpus& output, const FileRange& range, const Origin& origin,
                     std::span<const ByteRange> spans);
  bool is_held_out(int64_t index) const;
  bool split(std::string_view text, const FileRange& range, const Origin& origin,
             std::span<const ByteRange> spans, size_t position);
  void hold_out_end_of_last();
  void flush_last();

  double fraction_;
  DealtCorpus training_;
  std::optional<DealtCorpus> validation_;
  fs::path file_;
  int64_t file_index_ = 0;  // in the writers
  // The last small document, which may have to be split at the end; and the file where it lies.
  DocumentPart last_;
  fs::path last_file_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

}  // namespace skein

// Divides documents between the training and the validation corpus; see IngestOptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skein/data/corpus_writer.h"

namespace skein {

// Where to cut `text` so that about `position` bytes come before the cut: after a newline,
// otherwise between two characters. Neither part is empty; nothing if that is impossible. `text` is
// UTF-8.
std::optional<size_t> cut_near(std::string_view text, size_t position);

class Dealer {
 public:
  // `validation_out` empty: everything is for training.
  Dealer(const fs::path& out, const fs::path& validation_out, double validation_fraction);

  void add(std::string_view text);

  // Throws Error{kInvalid} if one of the corpora would be empty.
  void commit();

  const CorpusWriter& training() const { return training_; }
  const CorpusWriter* validation() const { return validation_ ? &*validation_ : nullptr; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  bool is_held_out(int64_t index) const;
  bool split(std::string_view text, size_t position);
  void flush_last();

  double fraction_;
  CorpusWriter training_;
  std::optional<CorpusWriter> validation_;
  std::string last_;  // the last small document, which may have to be split at the end
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

}  // namespace skein

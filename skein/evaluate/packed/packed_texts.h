// Texts of which some tokens are scored, packed into rows that the programs of training read.
//
// Rows      of `sequence_length` tokens. With the document mask several texts share a row, and each
//           attends to itself alone; without it a row holds one text. What is left of a row, and
//           every row behind the last, are tokens without a label
// Packing   the longest text first, each into the fullest row that has room (best fit decreasing):
//           the same rows on every rank
// Labels    only the tokens from EncodedText::score_from on have one, in the place of the token
//           before
// Errors    kInternal for a text that is longer than a row, which TextEncoder does not make
#pragma once

#include <cstdint>
#include <vector>

#include "skein/data/lanes/batch.h"
#include "skein/evaluate/encode/text_encoder.h"

namespace skein {

class PackedTexts {
 public:
  PackedTexts(std::vector<EncodedText> texts, int64_t sequence_length, bool document_mask);

  int64_t num_texts() const { return std::ssize(texts_); }
  int64_t num_rows() const { return std::ssize(rows_); }
  int64_t num_tokens() const { return num_tokens_; }  // in rows, without what fills them up
  int64_t num_labels() const { return num_labels_; }

  // Makes the batch's rows those from `first_row` on, and counts its labels.
  void fill(int64_t first_row, Batch& batch) const;
  // The text whose token is the label at this place, which has one.
  int64_t text_at(int64_t row, int64_t position) const;

 private:
  struct Placed {
    int64_t text = 0;
    int64_t begin = 0;  // in the row
  };
  void place(const Placed& placed, int64_t row_begin, Batch& batch) const;

  std::vector<EncodedText> texts_;
  int64_t sequence_length_ = 0;
  std::vector<std::vector<Placed>> rows_;
  int64_t num_tokens_ = 0, num_labels_ = 0;
};

}  // namespace skein

// The rows of one training step: what the model reads.
//
// Shapes   tokens, labels, positions, attention_starts [sequences, sequence_length], row-major
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skein/base/json.h"

namespace skein {

inline constexpr int32_t kNoLabel = -100;  // as in PyTorch's cross_entropy

struct Batch {
  Batch() = default;
  Batch(int64_t first_lane, int64_t sequences, int64_t sequence_length);

  int64_t step = 0;        // that it trains, from 1: the step of metrics.jsonl
  int64_t first_lane = 0;  // row r is lane first_lane + r
  int64_t sequences = 0;
  int64_t sequence_length = 0;
  int64_t num_label_tokens = 0;  // labels that are not kNoLabel
  // Of the corpus, by the lanes of this batch together, from the beginning of the run to the end of
  // its rows, in kBlockProgress-ths of a block. All lanes' over all blocks: how often the corpus
  // was read.
  int64_t progress = 0;

  std::vector<int32_t> tokens;
  // The token that follows, also from row to row; kNoLabel where another document follows (with the
  // document mask).
  std::vector<int32_t> labels;
  // 0, 1, 2, … from the start of the row and, with the document mask, of every document in it.
  std::vector<int32_t> positions;
  // Per token, the first index of its row that it may attend to: where its document begins, or 0.
  // Token t attends to attention_starts[t] .. t. All 0 without the document mask.
  std::vector<int32_t> attention_starts;

  // One row of one of the four above.
  std::span<const int32_t> row(const std::vector<int32_t>& values, int64_t index) const {
    return std::span(values).subspan(index * sequence_length, sequence_length);
  }
  // The indices of row `index` where attention begins anew: 0, and the first token of every
  // document that begins in the row (with the document mask).
  std::vector<int32_t> document_starts(int64_t index) const;

  // Bytes that the arrays of such a batch hold.
  static int64_t bytes(int64_t sequences, int64_t sequence_length);
};

// {"step", "rows": [{"lane", "tokens", "labels", "positions", "document_starts"}]}
Json batch_to_json(const Batch& batch);

}  // namespace skein

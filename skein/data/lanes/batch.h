// The rows of one training step, which the model reads.
//
// Shapes   tokens, labels, positions, attention_starts [sequences, sequence_length], row-major
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

inline constexpr int32_t kNoLabel = -100;  // as in PyTorch's cross_entropy

struct Batch {
  Batch() = default;
  Batch(int64_t first_lane, int64_t sequences, int64_t sequence_length);

  int64_t step = 0;        // the step that it trains, from 1, as in metrics.jsonl
  int64_t first_lane = 0;  // row r is of lane (first_lane + r) mod num_lanes
  int64_t num_lanes = 0;   // 0: there are more than rows
  int64_t sequences = 0;
  int64_t sequence_length = 0;
  int64_t num_label_tokens = 0;  // labels other than kNoLabel
  // How much of each corpus the lanes that this rank answers for have read together, from the
  // beginning of the run to the end of its rows, in kBlockProgress-ths of a block. The sum over all
  // lanes, divided by the number of blocks, is how often the corpus was read.
  std::vector<int64_t> progress = {0};

  std::vector<int32_t> tokens;
  // The next token of the lane, also across rows; kNoLabel if it belongs to another document (with
  // the document mask).
  std::vector<int32_t> labels;
  // 0, 1, 2, ... from the start of the row and, with the document mask, of every document in it.
  std::vector<int32_t> positions;
  // Per token, the first index of the row that it may attend to: the beginning of its document, or
  // 0. Token t attends to attention_starts[t] .. t. All 0 without the document mask.
  std::vector<int32_t> attention_starts;

  int64_t lane(int64_t row) const {
    return num_lanes == 0 ? first_lane + row : (first_lane + row) % num_lanes;
  }
  // Row `index` of one of the four arrays above.
  std::span<const int32_t> row(const std::vector<int32_t>& values, int64_t index) const {
    return std::span(values).subspan(index * sequence_length, sequence_length);
  }
  // The indices of row `index` where attention starts anew: 0 and, with the document mask, the
  // first token of every document that begins in the row.
  std::vector<int32_t> document_starts(int64_t index) const;

  // Bytes of the arrays of such a batch.
  static int64_t bytes(int64_t sequences, int64_t sequence_length);
};

// A part of a row: its tokens [begin, end) are of one segment of a document.
struct RowSegment {
  int64_t row = 0;
  int64_t begin = 0, end = 0;
  int64_t document = 0;     // its number in the corpus
  int64_t first_token = 0;  // of the part within its segment
  size_t corpus = 0;        // of a mixture

  bool operator==(const RowSegment&) const = default;
};

// {"step", "rows": [{"lane", "tokens", "labels", "positions", "document_starts", "documents":
// [{"document", "begin", "end"}]}]}; `segments` are in the order of rows. Of a mixture, whose
// `corpora` have names, a document has its "source" as well.
Json batch_to_json(const Batch& batch, std::span<const RowSegment> segments,
                   std::span<const std::string> corpora = {});

}  // namespace skein

// The sizes of a run's batches: smaller ones at first, where batch.ramp asks for them.
//
// Format   text "64 until 1000, 256 until 5000": rows and the last batch that has them, both
//          rising; batches after those have global_sequences rows, more than any before
// Formula  docs/data_order.md: batch n (from 1) is rows rows(1, n - 1) to before rows(1, n) of the
//          run, and row q is row q / B of lane q mod B
// Errors   parse throws Error{kUsage}
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace skein {

class BatchRamp {
 public:
  // All batches have as many rows.
  BatchRamp() : BatchRamp(1) {}
  explicit BatchRamp(int64_t sequences) : sequences_(sequences) {}
  static BatchRamp parse(std::string_view text, int64_t global_sequences);

  int64_t size(int64_t batch) const;
  // Of the batches from `first` to `last` together; 0 where there are none.
  int64_t rows(int64_t first, int64_t last) const;
  // The least number of batches, from the first on, that have `tokens` tokens together.
  int64_t batches_of(double tokens, int64_t tokens_of_row) const;
  // All sizes, rising.
  std::vector<int64_t> sizes() const;
  int64_t smallest() const { return sizes().front(); }
  // Divides all of them.
  int64_t divisor() const;

  bool operator==(const BatchRamp&) const = default;

 private:
  struct Level {
    int64_t sequences, last_batch;
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> parts_;  // rising
  int64_t sequences_;         // of the batches after them
};

// Which rows of every batch a data rank reads: of b rows those from b * first / of to before
// b * end / of.
struct RowShare {
  int64_t first = 0, end = 1, of = 1;

  int64_t first_row(int64_t sequences) const { return sequences * first / of; }
  int64_t end_row(int64_t sequences) const { return sequences * end / of; }
  int64_t rows(int64_t sequences) const { return end_row(sequences) - first_row(sequences); }
};

// How many of the `lanes` the rows [first, end) of batches of `sequences` rows come from, where
// batch follows batch.
int64_t lanes_of_rows(int64_t lanes, int64_t sequences, int64_t rows);

}  // namespace skein

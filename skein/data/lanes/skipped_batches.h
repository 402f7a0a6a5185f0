// Batches that training passes over, and thereby which batch a step trains on.
//
// Formula  step s trains on the s-th batch that is not skipped. Batches count from 1: batch b is
//          row b - 1 of every lane, so without skipped ones step s trains on batch s
// Format   text "17, 40-44" (data.skip_batches); JSON [[17, 17], [40, 44]], first and last, rising
//          and apart (docs/checkpoint_format.md)
// Cost     all functions take time in proportion to the number of ranges
// Errors   parse throws Error{kUsage}, from_json Error{kInvalid} naming `where`
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

class SkippedBatches {
 public:
  static SkippedBatches parse(std::string_view text);
  static SkippedBatches from_json(const Json& json, const std::string& where);
  std::string text() const;
  Json to_json() const;

  void add(int64_t first, int64_t last);  // 1 <= first <= last
  void add(const SkippedBatches& others);

  bool empty() const { return ranges_.empty(); }
  bool contains(int64_t batch) const;
  // The batch that a step trains on; 0 for step 0.
  int64_t batch_of(int64_t step) const;
  // The steps that train on batches before this one.
  int64_t steps_before(int64_t batch) const;
  // The first batch up to `last` that `others` has and this list lacks.
  std::optional<int64_t> first_lacking(const SkippedBatches& others, int64_t last) const;

  bool operator==(const SkippedBatches&) const = default;

 private:
  struct Range {
    int64_t first, last;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges_;  // rising; at least one batch lies between two of them
};

}  // namespace skein

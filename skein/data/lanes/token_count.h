// How many tokens the lanes make of a corpus, including those that begin and end documents.
#pragma once

#include <cstdint>

#include "skein/data/lanes/lane.h"

namespace skein {

struct TokenCount {
  double tokens = 0;
  int64_t counted_bytes = 0;  // of text
  bool is_exact = false;      // if all text was counted
};

// Counts whole blocks, spread evenly over the corpus, of about `most_bytes` together, or the whole
// of a corpus that is not larger. The result is always the same.
TokenCount count_tokens(const LaneContext& context, int64_t most_bytes = int64_t{4} << 20);

}  // namespace skein

// Where a rank's elements of a parameter are in the whole parameter, for ops that draw random
// numbers by element or update only a range of what the rank holds.
//
// The rank's part is a range of a box; in the whole, `run_elements` of the box at a time are
// contiguous, and `run_stride` is the distance from one such run to the next.
#pragma once

#include <algorithm>
#include <cstdint>

#include "skein/ir/kernel.h"
#include "skein/ir/op_def.h"

namespace skein {

// For `localize`: sets the attrs that LocalElements reads. `part` is the type of what the op
// updates, `weight` that of the weight, of which the rank may hold more.
void set_local_elements(const OpCall& call, const TensorType& part, const TensorType& weight,
                        int64_t rank, Attrs& attrs);

struct LocalElements {
  int64_t count = 0;         // elements of the part, without the padding behind them
  int64_t weight_begin = 0;  // the first of them in what the rank holds of the weight
  uint64_t range_begin = 0, first_element = 0, run_elements = 0, run_stride = 0;

  // Without `localize` a part of so many elements is the whole parameter.
  static LocalElements of(const Attrs& attrs, int64_t num_elements);

  // Calls use(begin, count, first) for pieces of [begin, end) of at most `most` elements, each
  // contiguous in the whole parameter, where its first element has the index `first`.
  template <typename Use>
  void for_each_run(uint64_t begin, uint64_t end, uint64_t most, const Use& use) const {
    uint64_t size;
    for (uint64_t at = begin; at < end; at += size) {
      const uint64_t in_box = range_begin + at, in_run = in_box % run_elements;
      size = std::min({most, end - at, run_elements - in_run});
      use(at, size, first_element + in_box / run_elements * run_stride + in_run);
    }
  }
};

}  // namespace skein

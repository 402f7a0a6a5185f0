// Which part of a value a rank stores, so that the ranks of a pipeline stage together store every
// element of the value once.
//
//   Sharded       each rank of the axis stores its slice
//   Flat          each rank of the axis stores its range
//   Replicated    over `dp` and `cp` each rank stores a range, as if the value were Flat, so that
//                 they write in parallel; over any other axis the rank with coordinate 0 stores it
//   `pp`          is ignored: a value belongs to the stage that has it. If several stages have it
//                 (tied embeddings), the caller must choose the one that stores it
//
// Errors   Error{kInvalid} for a Partial value, whose sum is not known yet.
#pragma once

#include <cstdint>

#include "skein/tensor/tensor_type.h"

namespace skein {

struct StoredPart {
  Box box;                  // what the sharded axes leave to this rank
  FlatRange range;          // of the box, row by row; empty: this rank stores nothing
  int64_t local_begin = 0;  // element of the rank's local part at which the range begins
};

StoredPart stored_part(const TensorType& type, const Mesh& mesh, int64_t rank);

}  // namespace skein

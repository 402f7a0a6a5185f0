// What a rank stores of a value that it has: every element of the value once, over all ranks of a
// pipeline stage.
//
//   Sharded       each rank of the axis its slice
//   Flat          each rank of the axis its range
//   Replicated    over `dp`, a range each, as if it were Flat, so that data-parallel ranks write
//                 together; over any other axis the rank with coordinate 0 stores it
//   `pp`          is not looked at: a value belongs to the stage that has it. One that several
//                 stages have, of tied embeddings, is to be stored by one of them: the caller's
//                 choice
//
// Errors   Error{kInvalid} for a Partial value: it is not known yet.
#pragma once

#include <cstdint>

#include "skein/tensor/tensor_type.h"

namespace skein {

struct StoredPart {
  Box box;                  // what the sharded axes leave to this rank
  FlatRange range;          // of the box, row by row; empty: this rank stores nothing
  int64_t local_begin = 0;  // element of the rank's local part where the range begins
};

StoredPart stored_part(const TensorType& type, const Mesh& mesh, int64_t rank);

}  // namespace skein

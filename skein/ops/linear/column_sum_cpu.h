// The sum of each column of a matrix, in a fixed order: fp32 over blocks of 64 rows, then over the
// blocks. Each thread sums its own columns, so the number of threads does not matter.
#pragma once

#include "skein/tensor/view.h"

namespace skein {

// sums[col] += sum over rows of from[row, col]; `from` f32 or bf16.
void add_column_sums(const View& from, float* sums);

}  // namespace skein

// The loop of the ops that add rows on the CPU: add, add_bias.
#pragma once

#include "skein/tensor/view.h"

namespace skein {

// y = a + b, row by row, each element rounded once; y may be a. Rows of b are `b_stride` elements
// apart: with 0, the same one is added to each row of a. a and y are f32 or bf16, and b either; or
// all are f64.
void add_rows(const View& a, const View& b, int64_t b_stride, const View& y);

}  // namespace skein

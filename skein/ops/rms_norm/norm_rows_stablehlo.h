// The normalization of rows in StableHLO, for the ops that do it: rms_norm, head_norm, layer_norm.
// All tensors are f32.
#pragma once

#include "skein/stablehlo/tensor.h"

namespace skein {

stablehlo::Tensor row_means(const stablehlo::Tensor& x);
// Over tokens. A long sum in fp32 is more accurate as a sum of short ones.
stablehlo::Tensor sum_of_rows(const stablehlo::Tensor& terms);

// rstd = 1 / sqrt(mean over columns of h^2 + epsilon), y = h rstd w, of h [rows, cols], w [cols].
struct NormedRows {
  stablehlo::Tensor y, rstd;
};
NormedRows norm_rows(const stablehlo::Tensor& h, const stablehlo::Tensor& w, double epsilon);

// dn = dy w, dh = rstd dn - h rstd^3 mean(dn h), dw = sum over rows of dy h rstd.
struct NormRowsBackward {
  stablehlo::Tensor dh, dw;
};
NormRowsBackward norm_rows_backward(const stablehlo::Tensor& dy, const stablehlo::Tensor& h,
                                    const stablehlo::Tensor& rstd, const stablehlo::Tensor& w);

}  // namespace skein

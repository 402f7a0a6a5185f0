// The share of x that gelu lets through, and its slope, in StableHLO, for gelu and geglu. All
// tensors are f32. An erf of its own StableHLO has not.
#pragma once

#include "skein/stablehlo/tensor.h"

namespace skein {

// gelu(x) = x share(x)
stablehlo::Tensor gelu_share(const stablehlo::Tensor& x, bool approximate);
// gelu'(x)
stablehlo::Tensor gelu_slope(const stablehlo::Tensor& x, const stablehlo::Tensor& share,
                             bool approximate);

}  // namespace skein

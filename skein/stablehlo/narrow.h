// Numbers of f64 in a narrow function (function.h): their bits come and go as ui32, low half first,
// and are f32 inside.
//
// Numbers  to nearest, ties to even; subnormal numbers become zero, and what is too large infinity
#pragma once

#include "skein/stablehlo/function.h"

namespace skein::stablehlo {

// The type of an array in the signature of a module; of f64 twice as many ui32 in its last dim.
Type outer_type(const Type& type);
// ui32, of outer_type of f64[dims] -> f32[dims]
Tensor from_f64_bits(const Tensor& bits, const Dims& dims);
// f32[dims] -> ui32, of outer_type of f64[dims]
Tensor to_f64_bits(const Tensor& value);

}  // namespace skein::stablehlo

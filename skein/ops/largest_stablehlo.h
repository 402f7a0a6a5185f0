// The output `largest` (largest.h) in StableHLO.
#pragma once

#include <vector>

#include "skein/ops/largest.h"
#include "skein/stablehlo/rule.h"

namespace skein {

// A value as it is stored, in fp32. XLA may leave out a conversion to bf16 and back
// (xla_allow_excess_precision), but cannot see that these bits are one.
inline stablehlo::Tensor as_stored(const stablehlo::Tensor& x) {
  using stablehlo::Element;
  if (x.element() != Element::kBF16) return to_f32(x);
  return bitcast(convert(bitcast(x, Element::kU16), Element::kU32) << 16, Element::kF32);
}

// Of all elements as they are stored, NaNs left out: f32[].
inline stablehlo::Tensor largest_magnitude(const stablehlo::Tensor& x) {
  using stablehlo::Compare;
  stablehlo::Dims all;
  for (int dim = 0; dim < x.rank(); ++dim) all.push_back(dim);
  const stablehlo::Tensor size = abs(as_stored(x));
  const stablehlo::Tensor zero = x.function().constant(stablehlo::Element::kF32, 0);
  return max(select(compare(size, Compare::kEqual, size), size, zero), all);
}

// The end of an op's rule; `outputs` has all others.
inline void append_largest(const stablehlo::RuleCall& call, const OpDef& op,
                           std::vector<stablehlo::Tensor>& outputs) {
  if (!finds_largest(call.constants())) return;
  stablehlo::Tensor largest = largest_magnitude(outputs[0]);
  for (int i = 1; i < op.largest_outputs; ++i) {
    largest = maximum(largest, largest_magnitude(outputs[i]));
  }
  outputs.push_back(reshape(largest, {1}));
}

}  // namespace skein

#include "skein/ops/linear/fp8_stablehlo.h"

#include <bit>
#include <span>

#include "skein/ops/largest_stablehlo.h"
#include "skein/ops/linear/fp8_operands.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// 2^k as f32, of -126 <= k <= 127.
Tensor power_of_two(const Tensor& k) { return bitcast((k + 127) << 23, Element::kF32); }

// fp8_scale_exponent of a largest magnitude f32[1]: i32[].
Tensor scale_exponent(const Tensor& found, const Fp8Format& format) {
  const Tensor largest = reshape(found, {});
  const auto exponent_field = std::bit_cast<uint32_t>(format.largest) >> 23;
  const Tensor most = minimum(exponent_field - (bitcast(largest, Element::kI32) >> 23), 100);
  const Tensor is_in_range =
      compare(largest * power_of_two(most), Compare::kLessEqual, format.largest);
  const Tensor has_scale = compare(largest, Compare::kGreater, 0) & is_finite(largest);
  return select(has_scale, select(is_in_range, most, most - 1),
                found.function().word(Element::kI32, 0));
}

// round_to_fp8 (skein/tensor/fp8.h) but for the sign of zeros. Maximum and minimum keep NaNs.
Tensor round_to_fp8(const Tensor& value, const Fp8Format& format) {
  const auto word = [&](uint32_t bits) { return value.function().word(Element::kI32, bits); };
  const uint32_t least = static_cast<uint32_t>(128 - format.bias) << 23;
  const uint32_t dropped = static_cast<uint32_t>(23 - format.mantissa_bits) << 23;
  const Tensor saturated = maximum(minimum(value, format.largest), -format.largest);
  const Tensor exponent =
      maximum(bitcast(saturated, Element::kI32) & word(0x7f800000u), word(least));
  // 1.5 2^23 units of the last kept bit: adding it leaves no bits below.
  const Tensor anchor = bitcast((exponent + word(dropped)) | word(0x400000u), Element::kF32);
  return (saturated + anchor) - anchor;
}

// `largest`: f32[1], of the group that x belongs to.
Tensor rounded_operand(const Tensor& x, const Tensor& largest, const Fp8Format& format) {
  const Tensor k = scale_exponent(largest, format);
  return convert(round_to_fp8(to_f32(x) * power_of_two(k), format) * power_of_two(-k), x.element());
}

// The parts of kept weights lie one after the other.
void take_kept_weights(const Fp8Group& weights, std::vector<Tensor>& operands) {
  const Tensor kept = operands.back();
  int64_t begin = 0;
  for (int i = weights.begin; i < weights.begin + weights.count; ++i) {
    const Type type = operands[i].type();
    const int64_t end = begin + type.num_elements();
    operands[i] = reshape(slice_dim(kept, 0, begin, end), type.dims);
    begin = end;
  }
}

// Of several tensors: f32[1].
Tensor largest_of(std::span<const Tensor> tensors) {
  Tensor largest = largest_magnitude(tensors.front());
  for (const Tensor& x : tensors.subspan(1)) largest = maximum(largest, largest_magnitude(x));
  return reshape(largest, {1});
}

}  // namespace

std::vector<Tensor> fp8_operands(const RuleCall& call, std::string_view op) {
  const Attrs& attrs = call.constants();
  std::vector<Tensor> operands = call.inputs;
  const int first_largest = fp8_first_largest(op, attrs, operands.size());
  const auto groups = fp8_groups(op, static_cast<int>(attrs.integer("parts")));
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    const Fp8Group& group = groups[g];
    if (g == kFp8Weights && has_kept_weights(attrs, op)) {
      take_kept_weights(group, operands);
      continue;
    }
    const Tensor& largest = call.inputs[first_largest + g];
    for (int i = group.begin; i < group.begin + group.count; ++i) {
      operands[i] = rounded_operand(operands[i], largest, group.format);
    }
  }
  return operands;
}

std::vector<Tensor> fp8_largest_rule(const RuleCall& call) {
  return {largest_of(std::span(call.inputs))};
}

std::vector<Tensor> round_weights_rule(const RuleCall& call) {
  const auto weights = std::span(call.inputs).first(call.inputs.size() - 2);
  const Tensor largest = largest_of(weights);
  std::vector<Tensor> rounded;
  for (const Tensor& w : weights) {
    rounded.push_back(reshape(rounded_operand(w, largest, kE4M3), {w.type().num_elements()}));
  }
  return {largest, concatenate(rounded, 0)};
}

}  // namespace skein

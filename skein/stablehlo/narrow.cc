#include "skein/stablehlo/narrow.h"

namespace skein::stablehlo {
namespace {

constexpr uint64_t kBiasDifference = 1023 - 127;  // of the exponents of f64 and f32

Tensor word(const Tensor& like, uint64_t value) {
  return like.function().word(Element::kU32, value);
}
Tensor bit_if(const Tensor& condition) { return convert(condition, Element::kU32); }

// Column `which` of [n, 2].
Tensor half(const Tensor& halves, int which, int64_t count) {
  return reshape(slice_dim(halves, 1, which, which + 1), {count});
}

}  // namespace

Type outer_type(const Type& type) {
  if (type.element != Element::kF64) return type;
  Type outer{Element::kU32, type.dims};
  if (outer.dims.empty()) outer.dims.push_back(1);
  outer.dims.back() *= 2;
  return outer;
}

Tensor from_f64_bits(const Tensor& bits, const Dims& dims) {
  const int64_t count = Type{Element::kF32, dims}.num_elements();
  const Tensor halves = reshape(bits, {count, 2});
  const Tensor low = half(halves, 0, count), high = half(halves, 1, count);
  const Tensor sign = high & word(bits, 0x80000000);
  const Tensor exponent = (high >> 20) & word(bits, 0x7ff);
  const Tensor fraction = ((high & word(bits, 0xfffff)) << 3) | (low >> 29);

  const Tensor lost = low & word(bits, 0x0fffffff);
  const Tensor rounds_up =
      ((low >> 28) & word(bits, 1)) & (bit_if(compare(lost, Compare::kNotEqual, 0)) | fraction);
  const Tensor finite = (((exponent - word(bits, kBiasDifference)) << 23) | fraction) + rounds_up;
  const Tensor is_nan =
      compare(exponent, Compare::kEqual, 0x7ff) & compare(fraction | low, Compare::kNotEqual, 0);
  const Tensor infinity = word(bits, 0x7f800000);
  const Tensor large = select(is_nan, word(bits, 0x7fc00000), infinity);
  const Tensor magnitude = select(
      compare(exponent, Compare::kLessEqual, static_cast<double>(kBiasDifference)), word(bits, 0),
      select(compare(exponent, Compare::kLess, static_cast<double>(kBiasDifference + 255)), finite,
             large));
  return reshape(bitcast(sign | magnitude, Element::kF32), dims);
}

Tensor to_f64_bits(const Tensor& value) {
  const int64_t count = value.type().num_elements();
  const Tensor bits = bitcast(reshape(value, {count}), Element::kU32);
  const Tensor exponent = (bits >> 23) & word(bits, 0xff);
  const Tensor fraction = bits & word(bits, 0x7fffff);
  const Tensor is_finite = compare(exponent, Compare::kLess, 0xff);
  const Tensor is_zero = compare(exponent, Compare::kEqual, 0);
  const Tensor wide = select(is_finite, exponent + word(bits, kBiasDifference), word(bits, 0x7ff));
  const Tensor none = word(bits, 0);
  const Tensor high = select(is_zero, none, (wide << 20) | (fraction >> 3));
  const Tensor low = select(is_zero, none, fraction << 29);
  const Tensor sign = bits & word(bits, 0x80000000);
  const Tensor both = concatenate({reshape(low, {count, 1}), reshape(sign | high, {count, 1})}, 1);
  return reshape(both, outer_type({Element::kF64, value.dims()}).dims);
}

}  // namespace skein::stablehlo

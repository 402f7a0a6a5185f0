// The share of x that gelu lets through, and its slope, for the CPU kernels of gelu and geglu.
//
// Included by *_cpu.cc files after hwy/foreach_target.h; compiled once per instruction set.
#if defined(SKEIN_OPS_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_OPS_GELU_INL_H_
#undef SKEIN_OPS_GELU_INL_H_
#else
#define SKEIN_OPS_GELU_INL_H_
#endif

#include "skein/ops/gelu/gelu_terms.h"
#include "skein/ops/simd/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::simd::HWY_NAMESPACE {

// gelu(x) = x share, gelu'(x) = slope. NaN stays NaN in both.
struct GeluTerms {
  VF32 share, slope;
};

template <size_t count>
HWY_INLINE VF32 polynomial(const std::array<float, count>& terms, VF32 x) {
  const F32 d;
  VF32 sum = hn::Set(d, terms[count - 1]);
  SKEIN_UNROLL
  for (size_t i = count - 1; i > 0; --i) sum = hn::MulAdd(sum, x, hn::Set(d, terms[i - 1]));
  return sum;
}

// x^2 - square, where `square` is x^2 rounded.
HWY_INLINE VF32 rest_of_square(VF32 x, VF32 square) {
#if HWY_NATIVE_FMA
  return hn::MulSub(x, x, square);
#else
  // Dekker's way: products of numbers of 12 bits are exact.
  const F32 d;
  const VF32 high = hn::And(x, hn::BitCast(d, hn::Set(U32(), 0xfffff000u))), low = hn::Sub(x, high);
  const VF32 rest = hn::Sub(hn::Mul(high, high), square);
  return hn::MulAdd(low, low, hn::MulAdd(hn::Add(high, high), low, rest));
#endif
}

// Of elements that are stored as T.
template <typename T>
HWY_INLINE GeluTerms exact_gelu(VF32 x) {
  namespace terms = gelu_terms;
  const F32 d;
  const VF32 one = hn::Set(d, 1.0f), size = hn::Abs(x), square = hn::Mul(x, x);
  const VF32 shifted = hn::Add(size, hn::Set(d, terms::kShift));
  VF32 bell, below;  // e^(-x^2 / 2), Phi(-|x|)
  if constexpr (sizeof(T) == sizeof(bfloat16)) {
    bell = coarse_exp2(hn::Mul(square, hn::Set(d, -0.5f * 1.44269504f)));
    const VF32 r = coarse_reciprocal(shifted);
    static constexpr auto kTerms = terms::coarse_terms();
    below = hn::Mul(hn::Mul(bell, r), polynomial(kTerms, r));
  } else {
    // The exponent has more digits than a float: up to 84 of them would show in the result.
    const VF32 minus_half = hn::Set(d, -0.5f);
    const VF32 rounded = exp(hn::Mul(square, minus_half));
    bell = hn::MulAdd(rounded, hn::Mul(rest_of_square(x, square), minus_half), rounded);
    const VF32 r = hn::Div(one, shifted);
    const VF32 q = hn::Mul(hn::Sub(size, hn::Set(d, terms::kShift)), r);
    static constexpr auto kTerms = terms::far_terms();
    below = hn::Mul(hn::Mul(bell, r), polynomial(kTerms, q));
  }
  const auto is_far = hn::Gt(size, hn::Set(d, terms::kLast));
  bell = hn::IfThenZeroElse(is_far, bell);
  below = hn::IfThenZeroElse(is_far, below);
  VF32 share = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Sub(one, below));
  if constexpr (sizeof(T) == sizeof(float)) {
    static constexpr auto kTerms = terms::near_terms();
    const VF32 near = hn::MulAdd(x, polynomial(kTerms, square), hn::Set(d, 0.5f));
    share = hn::IfThenElse(hn::Lt(size, one), near, share);
  }
  const VF32 density = hn::Mul(bell, hn::Set(d, terms::kDensityAtZero));
  return {share, hn::MulAdd(x, density, share)};
}

template <typename T>
HWY_INLINE GeluTerms approximate_gelu(VF32 x) {
  namespace terms = gelu_terms;
  const F32 d;
  const VF32 linear = hn::Set(d, terms::kLinear), cubic = hn::Set(d, terms::kCubic);
  const VF32 argument = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), cubic, linear));
  const auto [s, rest] = sigmoid<T>(argument);
  // The order of operands lets NaN through on x86.
  const VF32 flat = hn::Set(d, terms::kFlat);
  const VF32 bounded = hn::Max(hn::Neg(flat), hn::Min(flat, x));
  const VF32 growth =
      hn::MulAdd(hn::Mul(bounded, bounded), hn::Mul(cubic, hn::Set(d, 3.0f)), linear);
  return {s, hn::MulAdd(hn::Mul(x, hn::Mul(s, rest)), growth, s)};
}

template <typename T, bool approximate>
HWY_INLINE GeluTerms gelu(VF32 x) {
  if constexpr (approximate) {
    return approximate_gelu<T>(x);
  } else {
    return exact_gelu<T>(x);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

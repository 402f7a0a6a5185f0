// The logistic function, as activations use it.
//
// Included by *_cpu.cc files after hwy/foreach_target.h; compiled once per instruction set.
#if defined(SKEIN_OPS_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_OPS_SIGMOID_INL_H_
#undef SKEIN_OPS_SIGMOID_INL_H_
#else
#define SKEIN_OPS_SIGMOID_INL_H_
#endif

#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::simd::HWY_NAMESPACE {

struct Sigmoid {
  VF32 s, rest;  // and 1 - s
};

// Of elements that are stored as T. Of bf16 s is no less than 2^-125.
template <typename T>
HWY_INLINE Sigmoid sigmoid(VF32 x) {
  const F32 d;
  const VF32 one = hn::Set(d, 1.0f);
  if constexpr (sizeof(T) == sizeof(bfloat16)) {
    const VF32 power = hn::Mul(x, hn::Set(d, -1.44269504f));
    const VF32 bounded = hn::Min(hn::Set(d, 125.0f), power);  // on x86, NaN passes through
    const VF32 e = coarse_exp2(bounded), s = coarse_reciprocal(hn::Add(one, e));
    return {s, hn::Mul(e, s)};  // the difference of two coarse numbers would not vanish
  } else {
    const VF32 s = hn::Div(one, hn::Add(one, exp(hn::Neg(x))));
    return {s, hn::Sub(one, s)};
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

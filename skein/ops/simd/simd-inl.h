// Vectors of fp32 for the CPU kernels: loads and stores of f32 and bf16, and exp.
//
// Included by *_cpu.cc files after hwy/foreach_target.h; compiled once per instruction set. The
// vectors of a loop over `count` elements are loaded with load(d, p, n) and stored with
// store(v, d, p, n), n = min(Lanes(d), elements left); lanes past n read as zero.
#if defined(SKEIN_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_OPS_SIMD_INL_H_
#undef SKEIN_OPS_SIMD_INL_H_
#else
#define SKEIN_OPS_SIMD_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "skein/tensor/dtype.h"

// Before a loop over an array of vectors, which then stay in registers.
#ifndef SKEIN_UNROLL
#if defined(__clang__)
#define SKEIN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SKEIN_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace skein::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF32 = hn::Vec<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using VU32 = hn::Vec<U32>;
using U16Half = hn::Rebind<uint16_t, F32>;  // as many lanes as F32

HWY_INLINE VF32 bf16_bits_to_f32(hn::Vec<U16Half> bits) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

// The upper halves of 32-bit words.
HWY_INLINE hn::Vec<U16Half> upper_halves(VU32 words) {
#if HWY_TARGET == HWY_SCALAR
  const hn::RebindToSigned<U32> i32;
  return hn::DemoteTo(U16Half(), hn::BitCast(i32, hn::ShiftRight<16>(words)));
#else
  const hn::Repartition<uint16_t, F32> u16;
  const auto halves = hn::BitCast(u16, words);
  return hn::LowerHalf(U16Half(), hn::ConcatOdd(u16, halves, halves));
#endif
}

HWY_INLINE VU32 quiet_nan(VF32 value, VU32 rounded) {
  const U32 u32;
  const auto is_nan = hn::RebindMask(u32, hn::IsNaN(value));
  const VU32 nan = hn::Or(hn::BitCast(u32, value), hn::Set(u32, 0x00400000u));
  return hn::IfThenElse(is_nan, nan, rounded);
}

// Words whose upper halves are the bf16 nearest to `value`, ties to even, as bfloat16(float).
HWY_INLINE VU32 round_to_bf16(VF32 value) {
  const U32 u32;
  const VU32 bits = hn::BitCast(u32, value);
  const VU32 odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  return quiet_nan(value, hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7fffu))));
}

// Words whose upper halves are one of the two bf16 around `value`, the nearer one with the higher
// probability (stochastic rounding): adds the low 16 bits of `noise` below the bf16.
HWY_INLINE VU32 round_to_bf16(VF32 value, VU32 noise) {
  const U32 u32;
  const VU32 low = hn::And(noise, hn::Set(u32, 0xffffu));
  return quiet_nan(value, hn::Add(hn::BitCast(u32, value), low));
}

// What store_rounded would store, as fp32.
HWY_INLINE VF32 upper_halves_as_f32(VU32 words) {
  return hn::BitCast(F32(), hn::And(words, hn::Set(U32(), 0xffff0000u)));
}

HWY_INLINE VF32 load(F32 d, const float* from, size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(lanes, from, n * sizeof(float));
  return hn::Load(d, lanes);
}
HWY_INLINE void store(VF32 value, F32 d, float* to, size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::StoreU(value, d, to);
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(value, d, lanes);
  std::memcpy(to, lanes, n * sizeof(float));
}

HWY_INLINE VF32 load(F32 d, const bfloat16* from, size_t n) {
  const U16Half u16;
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  if (HWY_LIKELY(n == hn::Lanes(d))) return bf16_bits_to_f32(hn::LoadU(u16, bits));
  HWY_ALIGN uint16_t lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(lanes, bits, n * sizeof(uint16_t));
  return bf16_bits_to_f32(hn::Load(u16, lanes));
}
HWY_INLINE VU32 load(U32 d, const uint32_t* from, size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN uint32_t lanes[HWY_MAX_BYTES / sizeof(uint32_t)] = {};
  std::memcpy(lanes, from, n * sizeof(uint32_t));
  return hn::Load(d, lanes);
}
// Stores words made by round_to_bf16.
HWY_INLINE void store_rounded(VU32 words, bfloat16* to, size_t n) {
  const U16Half u16;
  auto* bits = reinterpret_cast<uint16_t*>(to);
  if (HWY_LIKELY(n == hn::Lanes(u16))) return hn::StoreU(upper_halves(words), u16, bits);
  HWY_ALIGN uint16_t lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(upper_halves(words), u16, lanes);
  std::memcpy(bits, lanes, n * sizeof(uint16_t));
}
HWY_INLINE void store(VF32 value, F32, bfloat16* to, size_t n) {
  store_rounded(round_to_bf16(value), to, n);
}

// to[c * to_stride + r] = from[r * from_stride + c]; rows and cols are multiples of 4.
inline void transpose_words(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t cols,
                            uint32_t* to, int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      to[col * to_stride + row] = from[row * from_stride + col];
    }
  }
#else
  const hn::FixedTag<uint32_t, 4> quad;
  const hn::FixedTag<uint64_t, 2> pair;
  for (int64_t row = 0; row < rows; row += 4) {
    for (int64_t col = 0; col < cols; col += 4) {
      const uint32_t* block = from + row * from_stride + col;
      const auto r0 = hn::LoadU(quad, block), r1 = hn::LoadU(quad, block + from_stride);
      const auto r2 = hn::LoadU(quad, block + 2 * from_stride);
      const auto r3 = hn::LoadU(quad, block + 3 * from_stride);
      const auto a = hn::BitCast(pair, hn::InterleaveLower(quad, r0, r1));
      const auto b = hn::BitCast(pair, hn::InterleaveLower(quad, r2, r3));
      const auto c = hn::BitCast(pair, hn::InterleaveUpper(quad, r0, r1));
      const auto e = hn::BitCast(pair, hn::InterleaveUpper(quad, r2, r3));
      uint32_t* out = to + col * to_stride + row;
      hn::StoreU(hn::BitCast(quad, hn::InterleaveLower(pair, a, b)), quad, out);
      hn::StoreU(hn::BitCast(quad, hn::InterleaveUpper(pair, a, b)), quad, out + to_stride);
      hn::StoreU(hn::BitCast(quad, hn::InterleaveLower(pair, c, e)), quad, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(quad, hn::InterleaveUpper(pair, c, e)), quad, out + 3 * to_stride);
    }
  }
#endif
}

// e^x to 2 ulp; 2^-126 below -87.33, infinity where it overflows; NaN stays NaN.
// Source: Cody-Waite reduction by ln 2 and a polynomial of degree 7 on |r| <= ln(2)/2; the
// quotient n is read off the low bits of n + 1.5 * 2^23.
HWY_INLINE VF32 exp(VF32 x) {
  const F32 d;
  const U32 u32;
  const VF32 magic = hn::Set(d, 12582912.0f);
  const VF32 bounded = hn::Max(hn::Set(d, -87.33f), x);  // on x86, NaN passes through
  // Only the exponent is clamped from above, so that overflow still gives infinity.
  const VF32 exponent = hn::Min(hn::Set(d, 88.37f), bounded);
  const VF32 shifted = hn::MulAdd(exponent, hn::Set(d, 1.44269504f), magic);
  const VF32 n = hn::Sub(shifted, magic);
  VF32 r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // Adds in pairs: a short chain of dependent operations matters more than their number.
  const VF32 one = hn::Set(d, 1.0f), r2 = hn::Mul(r, r), r4 = hn::Mul(r2, r2);
  const VF32 p01 = hn::Add(one, r);
  const VF32 p23 = hn::MulAdd(hn::Set(d, 1.0f / 6), r, hn::Set(d, 0.5f));
  const VF32 p45 = hn::MulAdd(hn::Set(d, 1.0f / 120), r, hn::Set(d, 1.0f / 24));
  const VF32 p67 = hn::MulAdd(hn::Set(d, 1.0f / 5040), r, hn::Set(d, 1.0f / 720));
  const VF32 low = hn::MulAdd(p23, r2, p01), high = hn::MulAdd(p67, r2, p45);
  const VF32 p = hn::MulAdd(high, r4, low);
  const auto scale =
      hn::Add(hn::ShiftLeft<23>(hn::BitCast(u32, shifted)), hn::Set(u32, 127u << 23));
  const VF32 result = hn::Mul(p, hn::BitCast(d, scale));
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return result;
#else
  return hn::IfThenElse(hn::IsNaN(x), x, result);  // Max may drop NaN
#endif
}

// ---- for values that bf16 rounds: coarser, and faster ----

// 2^x to 3e-6 for x < 128; 0 below -126, since subnormals are slow; NaN stays NaN. A polynomial of
// degree 4 that is exact at 0 and has the least relative error on [0, 1].
HWY_INLINE VF32 coarse_exp2(VF32 x) {
  const F32 d;
#if HWY_TARGET <= HWY_AVX3
  const VF32 f{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEG_INF)};  // x - floor(x)
#else
  const VF32 floor = hn::Floor(x), f = hn::Sub(x, floor);
#endif
  VF32 p = hn::Set(d, 0.013426686f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.052242473f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24128021f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.69304484f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
#if HWY_TARGET <= HWY_AVX3
  const __mmask16 is_large = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return VF32{_mm512_maskz_scalef_ps(is_large, p.raw, x.raw)};  // p 2^floor(x)
#else
  const hn::RebindToSigned<F32> i32;
  const auto exponent = hn::Add(hn::ConvertTo(i32, floor), hn::Set(i32, 127));
  const VF32 scale = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, scale));
#endif
}

// 1 / x to 1e-5 for 1 <= x <= 2^125: a guess from the bits and two steps of Newton's method, 5
// operations where a division takes the time of 32.
HWY_INLINE VF32 coarse_reciprocal(VF32 x) {
  const F32 d;
  const VF32 two = hn::Set(d, 2.0f);
  VF32 y = hn::BitCast(d, hn::Sub(hn::Set(U32(), 0x7ef311c3u), hn::BitCast(U32(), x)));
  y = hn::Mul(y, hn::NegMulAdd(x, y, two));
  return hn::Mul(y, hn::NegMulAdd(x, y, two));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

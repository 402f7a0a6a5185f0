#include "skein/ops/simd/normals_cpu.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/simd/normals_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ops/simd/philox-inl.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::VF32, sm::VU32;
using I32 = hn::RebindToSigned<sm::F32>;
using VI32 = hn::Vec<I32>;

VF32 constant(float value) { return hn::Set(sm::F32(), value); }
// Rounds twice, as the scalar code does.
VF32 multiply_add(VF32 a, VF32 b, VF32 c) { return hn::Add(hn::Mul(a, b), c); }

VF32 to_uniform(VU32 words) {
  const VI32 upper = hn::BitCast(I32(), hn::ShiftRight<8>(words));
  return hn::Mul(hn::Add(hn::ConvertTo(sm::F32(), upper), constant(1.0f)), constant(0x1p-24f));
}

VF32 log_of_uniform(VF32 u) {
  const I32 d;
  const VI32 sqrt_half = hn::Set(d, 0x3F3504F3);
  const VI32 bits = hn::Sub(hn::BitCast(d, u), sqrt_half);
  const VI32 mantissa = hn::Add(hn::And(bits, hn::Set(d, 0x7FFFFF)), sqrt_half);
  const VF32 x = hn::Sub(hn::BitCast(sm::F32(), mantissa), constant(1.0f));
  const VF32 exponent = hn::ConvertTo(sm::F32(), hn::ShiftRight<23>(bits));
  VF32 p = constant(7.0376836292e-2f);
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = multiply_add(p, x, constant(c));
  }
  const VF32 xx = hn::Mul(x, x);
  VF32 rest = hn::Add(hn::Mul(hn::Mul(p, x), xx), hn::Mul(constant(-2.12194440e-4f), exponent));
  rest = hn::Add(rest, hn::Mul(constant(-0.5f), xx));
  return hn::Add(hn::Add(x, rest), hn::Mul(constant(0.693359375f), exponent));
}

void cos_sin_of_turn(VF32 u, VF32& cosine, VF32& sine) {
  const I32 d;
  const VF32 quarters = hn::Mul(constant(4.0f), u);
  const VI32 quadrant = hn::ConvertTo(d, hn::Add(quarters, constant(0.5f)));
  const VF32 x =
      hn::Mul(constant(1.57079632679f), hn::Sub(quarters, hn::ConvertTo(sm::F32(), quadrant)));
  const VF32 xx = hn::Mul(x, x);
  VF32 s = multiply_add(constant(-1.9515295891e-4f), xx, constant(8.3321608736e-3f));
  s = hn::Mul(multiply_add(s, xx, constant(-1.6666654611e-1f)), xx);
  s = multiply_add(s, x, x);
  VF32 c = multiply_add(constant(2.443315711809948e-5f), xx, constant(-1.388731625493765e-3f));
  c = multiply_add(c, xx, constant(4.166664568298827e-2f));
  c = hn::Add(hn::Mul(hn::Mul(c, xx), xx), hn::Mul(constant(-0.5f), xx));
  c = hn::Add(c, constant(1.0f));
  const VI32 one = hn::Set(d, 1), two = hn::Set(d, 2);
  const auto is_swapped = hn::RebindMask(sm::F32(), hn::Eq(hn::And(quadrant, one), one));
  const auto with_sign = [&](VF32 value, VI32 bit) {
    return hn::Xor(value, hn::BitCast(sm::F32(), hn::ShiftLeft<30>(hn::And(bit, two))));
  };
  cosine = with_sign(hn::IfThenElse(is_swapped, s, c), hn::Add(quadrant, one));
  sine = with_sign(hn::IfThenElse(is_swapped, c, s), quadrant);
}

// Turns the words of whole blocks into normals, in place: radius and angle become cosine and sine.
void words_to_normals(uint32_t* words, size_t count, float scale) {
  const sm::U32 u32;
  const VF32 scales = constant(scale);
  for (size_t i = 0; i < count; i += 2 * hn::Lanes(u32)) {
    VU32 radius_words, angle_words;
    VF32 cosine, sine;
    hn::LoadInterleaved2(u32, words + i, radius_words, angle_words);
    const VF32 log = log_of_uniform(to_uniform(radius_words));
    const VF32 radius = hn::Sqrt(hn::Mul(constant(-2.0f), log));
    cos_sin_of_turn(to_uniform(angle_words), cosine, sine);
    const VF32 first = hn::Mul(scales, hn::Mul(radius, cosine));
    const VF32 second = hn::Mul(scales, hn::Mul(radius, sine));
    hn::StoreInterleaved2(hn::BitCast(u32, first), hn::BitCast(u32, second), u32, words + i);
  }
}

void draw(uint64_t seed, RandomPurpose purpose, uint32_t stream, uint64_t first, float scale,
          float* out, size_t count) {
  constexpr size_t kPiece = 1024;
  constexpr size_t kPairs = 2 * HWY_MAX_BYTES / sizeof(float);
  uint32_t words[kPiece + sm::kPhiloxSlack + kPairs];
  while (count > 0) {
    const size_t n = HWY_MIN(count, kPiece), before = first % 4;
    sm::philox_words(seed, purpose, stream, 0, first, n, words);
    words_to_normals(words, before + n, scale);
    std::memcpy(out, words + before, n * sizeof(float));
    first += n, out += n, count -= n;
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {

HWY_EXPORT(draw);

void draw_normals(uint64_t seed, RandomPurpose purpose, uint32_t stream, uint64_t first,
                  float scale, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(draw)(seed, purpose, stream, first, scale, out.data(), out.size());
}

}  // namespace skein
#endif

// The block kernels of attention for every instruction set, and the choice among them. CPUs before
// AVX2 use plain SSE.
#ifdef SKEIN_NEWER_TARGETS
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | SKEIN_NEWER_TARGETS)
#else
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/attention/cpu/attention_simd_cpu.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "skein/base/machine/prefetch.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/simd/amx_unit.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/ops/simd/simd-inl.h"

#define SKEIN_ATTENTION_BF16_DOT 0
#define SKEIN_ATTENTION_ATTRIBUTES HWY_BEFORE_NAMESPACE();
#define SKEIN_ATTENTION_PANELS fp32_panels
// clang-format off
#include "skein/ops/attention/cpu/attention_tile-inl.h"
#include "skein/ops/attention/cpu/attention_forward-inl.h"
#include "skein/ops/attention/cpu/attention_backward-inl.h"
// clang-format on
#undef SKEIN_ATTENTION_BF16_DOT
#undef SKEIN_ATTENTION_ATTRIBUTES
#undef SKEIN_ATTENTION_PANELS

#if HWY_TARGET == HWY_AVX3
#define SKEIN_ATTENTION_BF16_DOT 1
#define SKEIN_ATTENTION_ATTRIBUTES HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
#define SKEIN_ATTENTION_PANELS bf16_panels
// clang-format off
#include "skein/ops/attention/cpu/attention_tile-inl.h"
#include "skein/ops/attention/cpu/attention_forward-inl.h"
#include "skein/ops/attention/cpu/attention_backward-inl.h"
// clang-format on
#undef SKEIN_ATTENTION_ATTRIBUTES
#undef SKEIN_ATTENTION_PANELS
#define SKEIN_ATTENTION_UNIT tiles::AmxUnit
#define SKEIN_ATTENTION_ATTRIBUTES HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
#define SKEIN_ATTENTION_PANELS tile_panels
// clang-format off
#include "skein/ops/attention/cpu/attention_tile-inl.h"
#include "skein/ops/attention/cpu/attention_forward-inl.h"
#include "skein/ops/attention/cpu/attention_backward-inl.h"
// clang-format on
#undef SKEIN_ATTENTION_UNIT
#undef SKEIN_ATTENTION_ATTRIBUTES
#undef SKEIN_ATTENTION_PANELS
#undef SKEIN_ATTENTION_BF16_DOT
#endif

namespace skein::attention_cpu::HWY_NAMESPACE {

const Kernels& choose(DType dtype, [[maybe_unused]] Products products) {
#if HWY_TARGET == HWY_AVX3
  if (dtype == DType::kBF16 && products == Products::kTiles) return tile_panels::kernels_of(dtype);
  if (dtype == DType::kBF16 && products == Products::kBf16Dot) {
    return bf16_panels::kernels_of(dtype);
  }
#endif
  return fp32_panels::kernels_of(dtype);
}

}  // namespace skein::attention_cpu::HWY_NAMESPACE

#if HWY_ONCE
namespace skein::attention_cpu {

HWY_EXPORT(choose);

Products best_products() {
  return cpu_uses_amx()        ? Products::kTiles
         : cpu_uses_bf16_dot() ? Products::kBf16Dot
                               : Products::kFp32;
}

const Kernels& kernels_for(DType dtype, Products products) {
  return HWY_DYNAMIC_DISPATCH(choose)(dtype, std::min(products, best_products()));
}

}  // namespace skein::attention_cpu
#endif  // HWY_ONCE

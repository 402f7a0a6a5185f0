// The share of x that gelu lets through, and its slope, for the CUDA kernels of gelu and geglu.
#pragma once

#include <cmath>
#include <cstdint>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/gelu/gelu_terms.h"

namespace skein::cuda {

// gelu(x) = x share, gelu'(x) = slope.
struct GeluTerms {
  float share, slope;
};

// Of elements that are stored as T. The last bits of a float do not show in a bf16 result, and
// making them exact would take longer than memory does.
template <typename T>
__device__ GeluTerms exact_gelu(float x) {
  const float exponent = -0.5f * x * x;
  if constexpr (sizeof(T) == 4) {
    const float share = normcdff(x);
    return {share, fmaf(x, gelu_terms::kDensityAtZero * expf(exponent), share)};
  }
  constexpr auto kTerms = gelu_terms::coarse_terms();
  const float r = __fdividef(1.0f, fabsf(x) + gelu_terms::kShift);
  float sum = kTerms[kTerms.size() - 1];
#pragma unroll
  for (int i = static_cast<int>(kTerms.size()) - 2; i >= 0; --i) sum = fmaf(sum, r, kTerms[i]);
  const float bell = __expf(exponent), below = bell * r * sum;
  const float share = x < 0.0f ? below : 1.0f - below;
  return {share, fmaf(x, gelu_terms::kDensityAtZero * bell, share)};
}

template <typename T>
__device__ GeluTerms approximate_gelu(float x) {
  const float argument = x * fmaf(x * x, gelu_terms::kCubic, gelu_terms::kLinear);
  float s;
  if constexpr (sizeof(T) == 2) {
    s = __fdividef(1.0f, 1.0f + __expf(-argument));
  } else {
    s = 1.0f / (1.0f + expf(-argument));
  }
  const float bounded = fmaxf(-gelu_terms::kFlat, fminf(gelu_terms::kFlat, x));
  const float growth = fmaf(bounded * bounded, 3.0f * gelu_terms::kCubic, gelu_terms::kLinear);
  return {s, fmaf(x * (s * (1.0f - s)), growth, s)};
}

template <typename T, bool approximate>
__device__ GeluTerms gelu_of(float x) {
  if constexpr (approximate) {
    return approximate_gelu<T>(x);
  } else {
    return exact_gelu<T>(x);
  }
}

}  // namespace skein::cuda

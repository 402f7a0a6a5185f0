// What kernels share inside: conversions that round as the CPU's do, and rows read and written 16
// bytes at a time where their addresses allow.
#pragma once

#include <cuda_runtime.h>
#ifdef __CUDACC__
#include <cuda_bf16.h>
#endif

#include <bit>
#include <cstdint>
#include <type_traits>

#include "skein/tensor/view.h"

namespace skein::cuda {

__host__ __device__ inline float to_float(float x) { return x; }
__host__ __device__ inline float to_float(bfloat16 x) { return static_cast<float>(x); }

// To nearest, ties to even.
template <typename T>
__host__ __device__ T from_float(float x);
template <>
__host__ __device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__host__ __device__ inline bfloat16 from_float<bfloat16>(float x) {
#ifdef __CUDA_ARCH__
  bfloat16 result;
  result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return result;
#else
  return bfloat16(x);
#endif
}

// `n` adjacent elements that move as one.
template <typename T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};
template <typename T>
inline constexpr int kPackOf = 16 / sizeof(T);

template <int n, typename T>
__device__ Pack<T, n> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, n>*>(from);
}
// The pack at `from` if it is `there`, else `otherwise` in each element.
template <int n, typename T>
__device__ Pack<T, n> load_pack_or(T otherwise, bool there, const T* from) {
  Pack<T, n> pack;
  for (int i = 0; i < n; ++i) pack.at[i] = otherwise;
  if constexpr (sizeof(pack) % 4 == 0) {
    // Words are selected, as selected elements of bf16 would take a register each.
    auto words = std::bit_cast<Pack<uint32_t, sizeof(pack) / 4>>(pack);
    if (there) words = std::bit_cast<decltype(words)>(load_pack<n>(from));
    return std::bit_cast<Pack<T, n>>(words);
  }
  if (there) pack = load_pack<n>(from);
  return pack;
}
template <int n, typename T>
__device__ void store_pack(T* to, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(to) = pack;
}
// Stores to global memory with 16 bytes an access, or 8. A plain store under a condition is divided
// by nvcc.
template <int n, typename T>
__device__ void store_pack_global(T* to, const Pack<T, n>& pack) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(pack) % sizeof(uint4) == 0) {
    const auto words = std::bit_cast<Pack<uint4, sizeof(pack) / sizeof(uint4)>>(pack);
    for (size_t i = 0; i < sizeof(pack) / sizeof(uint4); ++i) {
      __stwb(reinterpret_cast<uint4*>(to) + i, words.at[i]);
    }
    return;
  }
  if constexpr (sizeof(pack) == sizeof(uint2)) {
    return __stwb(reinterpret_cast<uint2*>(to), std::bit_cast<uint2>(pack));
  }
#endif
  store_pack(to, pack);
}

template <int n, typename T>
__device__ void to_floats(float (&to)[n], const Pack<T, n>& pack) {
  if constexpr (std::is_same_v<T, bfloat16> && n % 2 == 0) {
    // This takes one instruction an element, where conversions one by one take two.
    const auto pairs = std::bit_cast<Pack<uint32_t, n / 2>>(pack);
    for (int i = 0; i < n; i += 2) {
      to[i] = std::bit_cast<float>(pairs.at[i / 2] << 16);
      to[i + 1] = std::bit_cast<float>(pairs.at[i / 2] & 0xffff0000u);
    }
  } else {
    for (int i = 0; i < n; ++i) to[i] = to_float(pack.at[i]);
  }
}

template <typename T, int n>
__device__ Pack<T, n> from_floats(const float (&from)[n]) {
  Pack<T, n> pack;
  for (int i = 0; i < n; ++i) pack.at[i] = from_float<T>(from[i]);
  return pack;
}

// What a kernel needs of a view. An absent one has no data.
template <typename T>
struct RowsOf {
  T* data;
  int64_t stride;

  __device__ T* at(int64_t row) const { return data + row * stride; }
};
template <typename T>
RowsOf<T> rows_of(const View& view) {
  return {view.as<T>(), view.row_stride};
}

// Whether packs of `n` elements can be read from every row of all these: addresses, distances of
// rows and columns are multiples of it. An absent view is no obstacle.
template <typename... Views>
bool are_packable(int64_t n, const Views&... views) {
  const auto one = [n](const View& view) {
    const int64_t bytes = n * size_of(view.dtype);
    return view.data == nullptr ||
           (reinterpret_cast<uintptr_t>(view.data) % bytes == 0 &&
            (view.row_stride % n == 0 || view.rows() == 1) && view.cols() % n == 0);
  };
  return (one(views) && ...);
}

// Calls `function(T{})` with the C++ type of a compute dtype.
template <typename Function>
void with_type(DType dtype, const Function& function) {
  if (dtype == DType::kBF16) {
    function(bfloat16());
  } else {
    function(float());
  }
}

}  // namespace skein::cuda

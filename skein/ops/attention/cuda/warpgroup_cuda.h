// Internal to the attention kernels of Hopper: matrix products of a warpgroup (128 threads), whose
// left operand is in registers or in shared memory and whose right one is in shared memory.
//
//   multiply     sums[64, N] (+)= left[64, 16] right[16, N]: bf16, sums in fp32, N = 64 or 128
//   in shared    panels of 64 columns (128 bytes a row), one after another, each with its 16-byte
//   memory       chunks swizzled: chunk c of row r lies at c ^ (r % 8). Panels begin at multiples
//                of 1,024 bytes
//   in registers a lane holds rows row_of_lane() and 8 below it. Of sums, element i is in row
//                (i / 2) % 2 of these and column column_of(i); of `left`, word w holds row w % 2
//                and columns 8 (w / 2) + 2 (lane % 4) + {0, 1}. So words 4 s to 4 s + 3 of sums
//                rounded in pairs are the left operand of columns 16 s to 16 s + 15
//
// Products run behind the program: fence(), multiply()..., commit(), wait(). Between fence() and
// wait() nobody touches sums and left. Registers of `left` that are to outlive a loop's turn do
// not: ptxas 13.0 gives them away after the turn's product (seen in its SASS, and in wrong results
// on an H200). A left operand that stays belongs in shared memory.
//
// Source  PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifdef SKEIN_CUDA_EMULATED
#include "warpgroup_emulation.h"
#endif

namespace skein::attention_cuda::warpgroup {

constexpr int kPanel = 64;  // columns
constexpr int kDepth = 16;  // what one product sums over

template <int rows, int cols>
struct alignas(1024) Panels {
  static_assert(rows % 8 == 0 && cols % kPanel == 0);
  static constexpr uint32_t kBytes = rows * kPanel * sizeof(uint16_t);  // of a panel
  uint16_t bits[cols / kPanel][rows * kPanel];

  // Where an element is; those of one chunk, 8 from a multiple of 8 on, are adjacent.
  __device__ uint16_t* at(int row, int col) {
    const int chunk = col % kPanel / 8 ^ row % 8;
    return &bits[col / kPanel][row * kPanel + chunk * 8 + col % 8];
  }
};

__device__ inline int row_of_lane() {
  return static_cast<int>(threadIdx.x) / 32 % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}
__device__ inline int column_of(int element) {
  return element / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + element % 2;
}

__device__ inline uint32_t address_of(const void* shared) {
#ifdef SKEIN_CUDA_EMULATED
  return cuda_emulation::shared_address(shared);
#else
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
#endif
}

// A descriptor: address, distances in bytes, and swizzling by 128 bytes.
__device__ inline uint64_t describe(uint32_t address, uint32_t leading, uint32_t stride) {
  return (address & 0x3ffff) >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         uint64_t{1} << 62;
}
// Right operand [16, N]: columns from `depth` on of N rows, transposed.
template <int rows, int cols>
__device__ uint64_t rows_transposed(const Panels<rows, cols>& from, int depth) {
  return describe(
      address_of(&from) + depth / kPanel * from.kBytes + static_cast<uint32_t>(depth % kPanel * 2),
      0, 1024);
}
// Left operand [64, 16]: columns from `depth` on of 64 rows from `row` on, a multiple of 8.
template <int rows, int cols>
__device__ uint64_t left_rows(const Panels<rows, cols>& from, int row, int depth) {
  return rows_transposed(from, depth) + static_cast<uint64_t>(row * kPanel * 2 >> 4);
}
// Right operand [16, N]: 16 rows from `row` on, all columns.
template <int rows, int cols>
__device__ uint64_t rows_as_they_are(const Panels<rows, cols>& from, int row) {
  return describe(address_of(&from) + static_cast<uint32_t>(row * kPanel * 2), from.kBytes, 1024);
}

// What threads have written to shared memory is seen by products after this and a barrier.
__device__ inline void publish_to_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ inline void fence() {
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::wgmma_fence();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void commit() {
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::wgmma_commit();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Until at most `pending` of the groups of products that were committed last have not ended.
template <int pending = 0>
__device__ void wait() {
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::wgmma_wait(pending);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#endif
}

// Between the computation of a number that is never negative and a wait(). ptxas moves waits up
// over arithmetic, which would then begin only after the products; it does not over a store.
__device__ inline void compute_before_wait([[maybe_unused]] float never_negative) {
#ifdef __CUDA_ARCH__
  asm volatile("{.reg .pred no; setp.lt.f32 no, %0, 0f00000000; @no st.shared.f32 [%1], %0;}"
               :
               : "f"(never_negative), "r"(0)
               : "memory");
#endif
}

// A warpgroup's registers a thread: fewer than the block began with, or, once others have given
// theirs up, more. A multiple of 8.
template <int registers>
__device__ void keep_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers>
__device__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SKEIN_SUMS_8(i)                                                               \
  "+f"(sums[(i) + 0]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3]), \
      "+f"(sums[(i) + 4]), "+f"(sums[(i) + 5]), "+f"(sums[(i) + 6]), "+f"(sums[(i) + 7])
#define SKEIN_SUMS_32(i) \
  SKEIN_SUMS_8(i), SKEIN_SUMS_8((i) + 8), SKEIN_SUMS_8((i) + 16), SKEIN_SUMS_8((i) + 24)
#define SKEIN_NAMES_32                                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SKEIN_NAMES_64                                                                           \
  SKEIN_NAMES_32                                                                                 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// PTX says of an operand in shared memory whether its columns are adjacent: of the right one
// `transposed`.
#define SKEIN_PRODUCT(cols, names, left, right, adds, transposed)                            \
  "{.reg .pred add; setp.ne.b32 add, " adds                                                  \
  ", 0;\n"                                                                                   \
  "wgmma.mma_async.sync.aligned.m64n" cols "k16.f32.bf16.bf16 {" names "}, " left ", " right \
  ", add, 1, 1, " transposed ";}"
#endif

// `add` false begins with zeros. kTransposed says which of the descriptors above `right` is.
template <bool kTransposed, int count>
__device__ void multiply(float (&sums)[count], const uint32_t* left, uint64_t right, bool add) {
  static_assert(count == 32 || count == 64);
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::wgmma<kTransposed>(sums, left, right, add);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SKEIN_OPERANDS                                                                            \
  "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(static_cast<int>(add)), \
      "n"(kTransposed ? 0 : 1)
  if constexpr (count == 32) {
    asm volatile(SKEIN_PRODUCT("64", SKEIN_NAMES_32, "{%32, %33, %34, %35}", "%36", "%37", "%38")
                 : SKEIN_SUMS_32(0)
                 : SKEIN_OPERANDS);
  } else {
    asm volatile(SKEIN_PRODUCT("128", SKEIN_NAMES_64, "{%64, %65, %66, %67}", "%68", "%69", "%70")
                 : SKEIN_SUMS_32(0), SKEIN_SUMS_32(32)
                 : SKEIN_OPERANDS);
  }
#undef SKEIN_OPERANDS
#endif
}
// The same with a left operand in shared memory: left_rows().
template <bool kTransposed, int count>
__device__ void multiply(float (&sums)[count], uint64_t left, uint64_t right, bool add) {
  static_assert(count == 32 || count == 64);
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::wgmma<kTransposed>(sums, left, right, add);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SKEIN_OPERANDS "l"(left), "l"(right), "r"(static_cast<int>(add)), "n"(kTransposed ? 0 : 1)
  if constexpr (count == 32) {
    asm volatile(SKEIN_PRODUCT("64", SKEIN_NAMES_32, "%32", "%33", "%34", "0, %35")
                 : SKEIN_SUMS_32(0)
                 : SKEIN_OPERANDS);
  } else {
    asm volatile(SKEIN_PRODUCT("128", SKEIN_NAMES_64, "%64", "%65", "%66", "0, %67")
                 : SKEIN_SUMS_32(0), SKEIN_SUMS_32(32)
                 : SKEIN_OPERANDS);
  }
#undef SKEIN_OPERANDS
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#undef SKEIN_PRODUCT
#undef SKEIN_NAMES_64
#undef SKEIN_NAMES_32
#undef SKEIN_SUMS_32
#undef SKEIN_SUMS_8
#endif

}  // namespace skein::attention_cuda::warpgroup

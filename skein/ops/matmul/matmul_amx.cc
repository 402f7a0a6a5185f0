// The AMX path for bf16: tdpbf16ps, with operands packed and sums stored by AVX-512.
#include "skein/ops/matmul/matmul_cpu.h"
#include "skein/ops/matmul/matmul_tiles-inl.h"
#include "skein/ops/simd/amx_unit.h"
#include "skein/ops/simd/cpu_kind.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace skein {

#if defined(__x86_64__)
namespace {
void end_tiles_and_streams() {
  tiles::AmxUnit::end();
  _mm_sfence();  // what was streamed is there before the team goes on
}
}  // namespace
#endif

std::optional<MatmulKernel> amx_matmul_kernel([[maybe_unused]] DType dtype) {
#if defined(__x86_64__)
  if (dtype == DType::kBF16 && cpu_uses_amx()) {
    static_assert(kMatmulDepthGroup == 2 * tiles::kSteps);
    MatmulKernel kernel = avx512_block_kernel();
    kernel.keeps_a = true;
    kernel.streams = true;
    kernel.accumulate = tiles::accumulate<tiles::AmxUnit>;
    kernel.begin = tiles::AmxUnit::begin;
    kernel.end = end_tiles_and_streams;
    return kernel;
  }
#endif
  return std::nullopt;
}

}  // namespace skein

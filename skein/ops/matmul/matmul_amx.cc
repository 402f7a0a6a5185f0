// The AMX path for bf16: tdpbf16ps, with operands packed and sums stored by AVX-512.
#include "skein/ops/matmul/matmul_tiles-inl.h"
#include "skein/ops/simd/cpu_kind.h"

#if defined(__x86_64__)

namespace skein {
namespace {

// The compilers' own functions take no constant of a template as a tile, and GCC 12's do not say
// that they read memory.
struct AmxUnit {
  template <int kTile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"n"(kTile));
  }
  template <int kTile>
  static void load(const void* from, int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "n"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void store(void* to, int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "n"(kTile) : "memory");
  }
  template <int kSum, int kA, int kB>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"n"(kSum), "n"(kA), "n"(kB));
  }
};

// Source: TILECFG in the manual.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void begin() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = tiles::kBytes;
    config.rows[tile] = tiles::kRows;
  }
  asm volatile("ldtilecfg %0" ::"m"(config));
}

// The system saves tiles that are in use whenever it switches threads.
void end() { asm volatile("tilerelease"); }

}  // namespace

std::optional<MatmulKernel> amx_matmul_kernel(DType dtype) {
  if (dtype != DType::kBF16 || !cpu_uses_amx()) return std::nullopt;
  MatmulKernel kernel = avx512_block_kernel();
  kernel.tile_rows = tiles::kTileRows;
  kernel.accumulate = tiles::accumulate<AmxUnit>;
  kernel.begin = begin;
  kernel.end = end;
  return kernel;
}

}  // namespace skein

#else

namespace skein {
std::optional<MatmulKernel> amx_matmul_kernel(DType) { return std::nullopt; }
}  // namespace skein

#endif

// The tile instructions of x86 (AMX, bf16), for ops/simd/tiles.h. Only where cpu_uses_amx().
#pragma once

#if defined(__x86_64__)

#include <cstdint>

#include "skein/ops/simd/tiles.h"

namespace skein::tiles {

// The compilers' own functions take no constant of a template as a tile, and GCC 12's do not say
// that they read memory.
struct AmxUnit {
  static void begin() {
    struct alignas(64) {  // TILECFG in the manual
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = kBytes;
      config.rows[tile] = kRows;
    }
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  // The system saves tiles that are in use whenever it switches threads.
  static void end() { asm volatile("tilerelease"); }

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

}  // namespace skein::tiles

#endif

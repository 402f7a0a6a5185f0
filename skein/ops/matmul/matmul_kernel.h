// The part of a matrix product that depends on the kind of CPU.
//
// Operands are packed into *panels* of 32-bit *steps*: a step is one f32, or a pair of bf16 that
// are neighbours along the summed dim (a missing second one is zero). A panel of B holds
// `panel_cols` columns as [steps][panel_cols]; a panel of A, if A must be packed, holds
// `a_panel_rows` rows as [steps][a_panel_rows]. Where steps come in blocks they are
// [steps / block_steps][panel_cols / 16][block_steps][16] and
// [steps / block_steps][a_panel_rows][block_steps]. Sums run in order of the steps, in fp32, as
// one chain per output element (of blocks on AMX: ops/simd/tiles.h), so they do not depend on how
// the work is divided.
#pragma once

#include <cstdint>
#include <optional>

#include "skein/tensor/dtype.h"

namespace skein {

// A [rows, depth] or B [depth, cols] in memory. `depth_is_row`: the summed dim is the outer one.
struct MatmulOperand {
  const void* data = nullptr;
  int64_t row_stride = 0;  // elements
  bool depth_is_row = false;
};

// The destination of a finished tile of fp32 sums.
struct MatmulStore {
  void* out = nullptr;
  DType dtype = DType::kF32;   // f32 or bf16
  int64_t row_stride = 0;      // elements
  bool accumulate = false;     // out += sums (f32 only)
  bool from_zero = false;      // with accumulate: out counts as zero, whatever it holds
  bool stream = false;         // past the caches: run_matmul's choice, of whole cache lines
  const void* bias = nullptr;  // of the columns, or null
  DType bias_dtype = DType::kF32;
};

inline constexpr int kMatmulPanelRows = 96;  // of a task

// The layout of A that the tiles read: element (row, step) of tile t lies at
// data + t * tile_bytes + row * row_bytes + step * step_bytes; where steps come in blocks, that is
// the place of a block's first step, and its others follow.
struct MatmulTiles {
  const char* data = nullptr;
  int64_t tile_bytes = 0;
  int64_t row_bytes = 0;
  int64_t step_bytes = 0;
};

struct MatmulKernel {
  int tile_rows = 0;   // divides kMatmulPanelRows
  int panel_cols = 0;  // divides 256
  // tile_rows, so that a tile's rows lie one behind the other; or kMatmulPanelRows.
  int a_panel_rows = kMatmulPanelRows;
  int elements_a_step = 1;  // 2: pairs of bf16
  int block_steps = 1;  // elements divide kMatmulDepthGroup; the last block's missing ones are zero
  // What stays in L1: a tile of A while all columns of a task pass, with their sums; or a panel of
  // B while all rows do.
  bool keeps_a = false;
  bool streams = false;  // store() heeds MatmulStore::stream, `end` waits for it
  // Packs `depth` elements of `lanes` columns of B (or rows of A), beginning at operand.data, into
  // panels that are `panel_words` apart; lanes that the last panel lacks become zero.
  void (*pack_b)(const MatmulOperand&, int64_t depth, int64_t lanes, uint32_t* panels,
                 int64_t panel_words) = nullptr;
  void (*pack_a)(const MatmulOperand&, int64_t depth, int64_t lanes, uint32_t* panels,
                 int64_t panel_words) = nullptr;
  // sums[rows, panel_cols] (+)= A B over `steps`, for one tile; `first`: from zero. The room for
  // sums is that of tile_rows.
  void (*accumulate)(const MatmulTiles& a, int rows, const uint32_t* b_panel, int64_t steps,
                     bool first, float* sums) = nullptr;
  void (*store)(const float* sums, int rows, int cols, const MatmulStore& to) = nullptr;
  // Around all that a thread does of one product; null: nothing.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

// AVX-512 with bf16 dot products (x86); nothing if the CPU lacks them or is limited (cpu_kind.h).
std::optional<MatmulKernel> avx512_matmul_kernel(DType dtype);
// Tiles of bf16 products (x86 AMX): bf16 only; nothing if the CPU or the system lacks them.
std::optional<MatmulKernel> amx_matmul_kernel(DType dtype);
// The packing and storing of AVX-512 in bf16 for tiles: steps in blocks of 16, panels of 32 rows,
// and of 64 columns.
MatmulKernel avx512_block_kernel();
// For any CPU, at the width of its vectors. bf16 is widened while packing.
MatmulKernel portable_matmul_kernel(DType dtype);

}  // namespace skein

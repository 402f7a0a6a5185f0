// What the kernels of fp8 operands share: several matrices, cut into tiles, of which a block takes
// one.
#pragma once

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/linear/operands_cuda.h"

namespace skein::fp8_parts {

using namespace cuda;  // NOLINT(google-build-using-namespace)

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kPack = kPackOf<bfloat16>;

struct Tile {
  int rows, cols;
};

struct OperandPart {
  const bfloat16* from;
  int64_t from_stride, rows, cols;
  void* to;  // null: only the transposed one is made
  int64_t to_stride;
  uint8_t* transposed;  // [cols, rows]; null: there is none
  int64_t transposed_stride;
  int group;
};
struct PartList {
  static constexpr int kCapacity = 2 * kMaxLinearParts + 1;
  OperandPart parts[kCapacity];
  unsigned first_block[kCapacity + 1];  // blocks before each part, and all
  int size;
  Fp8Format formats[kMaxFp8Groups];
  const float* largest[kMaxFp8Groups];  // magnitude of each group
  float* inverse_scales;                // of each group, kScaleStride apart
  int num_groups;                       // whose inverse scales are wanted
};
static_assert(sizeof(PartList) <= 4096);

__device__ inline int part_of_block(const PartList& list, unsigned block) {
  int which = 0, end = list.size;  // the part is one of [which, end)
  while (end - which > 1) {
    const int middle = (which + end) / 2;
    (list.first_block[middle] <= block ? which : end) = middle;
  }
  return which;
}

// Elements from `col` on. Beyond the part's last row or column it reads any of its elements, so
// that loads need no condition and do not wait for each other. `packed`: whole packs can be read.
template <bool packed>
__device__ Pack<bfloat16, kPack> load(const OperandPart& part, int64_t row, int64_t col) {
  const bfloat16* from = part.from + (row < part.rows ? row : part.rows - 1) * part.from_stride;
  if constexpr (packed) return load_pack<kPack>(from + (col < part.cols ? col : 0));
  Pack<bfloat16, kPack> pack;
  for (int i = 0; i < kPack; ++i) pack.at[i] = from[col + i < part.cols ? col + i : 0];
  return pack;
}

// Gives each tile a block.
inline void set_blocks(PartList& list, Tile tile, Tile transposed) {
  list.first_block[0] = 0;
  for (int i = 0; i < list.size; ++i) {
    const OperandPart& part = list.parts[i];
    const Tile size = part.transposed != nullptr ? transposed : tile;
    list.first_block[i + 1] =
        list.first_block[i] + blocks_for(part.rows, size.rows) * blocks_for(part.cols, size.cols);
  }
}

}  // namespace skein::fp8_parts

namespace skein {

// Enqueues what finds the largest magnitude of the first `count` inputs (fp8_largest_cuda.cu).
void find_largest_of_inputs(const KernelCall& call, size_t count, const View& output);

}  // namespace skein

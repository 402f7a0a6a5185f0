#include <algorithm>

#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/linear/fp8_parts_cuda.h"
#include "skein/ops/linear/operands_cuda.h"

namespace skein {

using namespace fp8_parts;  // NOLINT(google-build-using-namespace)

namespace {

constexpr Tile kRead = {8 * kWarps, 32 * kPack};

// Of all parts, and of the magnitudes in `largest`.
template <bool packed>
__global__ void __launch_bounds__(kThreads) find_largest(PartList list, unsigned* found) {
  wait_for_previous_kernel();
  if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < list.num_groups) {
    atomicMax(found, __float_as_uint(*list.largest[threadIdx.x]));
  }
  if (list.size == 0) return;
  constexpr int kLoads = kRead.rows / kWarps;
  const int which = part_of_block(list, blockIdx.x);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const OperandPart& part = list.parts[which];
  const unsigned block = blockIdx.x - list.first_block[which];
  const unsigned tiles = static_cast<unsigned>((part.cols + kRead.cols - 1) / kRead.cols);
  const int64_t row = int64_t{block / tiles} * kRead.rows + warp;
  const int64_t col = int64_t{block % tiles} * kRead.cols + lane * kPack;
  Pack<bfloat16, kPack> packs[kLoads];
  for (int i = 0; i < kLoads; ++i) packs[i] = load<packed>(part, row + i * kWarps, col);
  float largest = 0;
  for (int i = 0; i < kLoads; ++i) largest = larger(largest, packs[i]);
  keep_largest(largest, found);
}

}  // namespace

void find_largest_of_inputs(const KernelCall& call, size_t count, const View& output) {
  PartList list = {};
  bool packed = true;
  for (size_t i = 0; i < count; ++i) {
    const View& x = call.inputs[i];
    if (x.dtype == DType::kF32) {
      list.largest[list.num_groups++] = x.as<const float>();
      continue;
    }
    list.parts[list.size++] = {x.as<const bfloat16>(), x.row_stride, x.rows(), x.cols()};
    packed = packed && are_packable(kPack, x);
  }
  set_blocks(list, kRead, kRead);
  unsigned* const found = start_largest(call, output);
  launch(call, std::max(list.first_block[list.size], 1u), kThreads,
         packed ? find_largest<true> : find_largest<false>, list, found);
}

void run_fp8_largest_on_cuda(const KernelCall& call) {
  find_largest_of_inputs(call, call.inputs.size(), call.outputs[0]);
}

}  // namespace skein

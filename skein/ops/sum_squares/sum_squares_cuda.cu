#include <algorithm>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/cuda/tensor_list_cuda.h"
#include "skein/ops/sum_squares/sum_squares_cuda_rules.h"
#include "skein/tensor/tensor_type.h"

namespace skein {
namespace {

using namespace cuda;              // NOLINT(google-build-using-namespace)
using namespace sum_squares_cuda;  // NOLINT(google-build-using-namespace)
using exact_sum::kBins;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocksEach = 6;  // of a multiprocessor
static_assert(kTensorsAtOnce == TensorList<1>::kCapacity);

template <int n, typename T>
__device__ void add_squares(double (&sums)[4], const Pack<T, n>& pack) {
  float values[n];
  to_floats(values, pack);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const double value = values[i];
    sums[i % 4] = fma(value, value, sums[i % 4]);
  }
}

// A lane's part of a segment of kFlatGranule elements, of which `count` exist. Which elements it
// takes, and in which order, depends on nothing else.
template <typename T>
__device__ double lane_squares(const T* x, int64_t count) {
  constexpr int kPack = kPackOf<T>, kStep = 32 * kPack, kPacks = kFlatGranule / kStep;
  const int first = static_cast<int>(threadIdx.x) % 32 * kPack;
  double sums[4] = {};
  if (count == kFlatGranule && reinterpret_cast<uintptr_t>(x) % sizeof(Pack<T, kPack>) == 0) {
    Pack<T, kPack> packs[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) packs[p] = load_pack<kPack>(x + p * kStep + first);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) add_squares(sums, packs[p]);
  } else {
#pragma unroll 1
    for (int at = first; at < count; at += kStep) {
      Pack<T, kPack> pack;
#pragma unroll
      for (int i = 0; i < kPack; ++i) pack.at[i] = at + i < count ? x[at + i] : T{};
      add_squares(sums, pack);
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// A warp adds whole segments to bins of its own. The block's bins go to
// block_bins[bin][blockIdx.x].
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    add_segments(const TensorList<1> list, double* block_bins, int64_t stride) {
  wait_for_previous_kernel();
  __shared__ double bins[kWarps][kBins];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < kBins) bins[warp][lane] = 0;
  __syncwarp();
  for (int64_t index = int64_t{blockIdx.x} * kWarps + warp; index < list.num_segments();
       index += int64_t{gridDim.x} * kWarps) {
    const TensorSegment segment = list.segment(index);
    const T* x = static_cast<const T*>(list.data[0][segment.tensor]) + segment.begin;
    const double sum = warp_reduce(lane_squares(x, segment.count), Sum());
    if (lane == 0) exact_sum::add(bins[warp], sum);
  }
  __syncthreads();
  const int bin = threadIdx.x;
  if (bin >= kBins) return;
  double sum = 0;
  for (int i = 0; i < kWarps; ++i) sum += bins[i][bin];
  block_bins[bin * stride + blockIdx.x] = sum;
}

// A block adds one bin. These sums are exact, so that their order changes nothing.
__global__ void __launch_bounds__(kThreads)
    add_blocks(const double* block_bins, int64_t stride, int64_t num_blocks, double* bins) {
  wait_for_previous_kernel();
  double sum = 0;
  for (int64_t i = threadIdx.x; i < num_blocks; i += kThreads) {
    sum += block_bins[blockIdx.x * stride + i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) bins[blockIdx.x] = sum;
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[sum_squares] input {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

void run(const KernelCall& call) {
  auto* block_bins = static_cast<double*>(call.scratch);
  const int64_t stride = max_blocks(call), resident = resident_blocks(kBlocksEach);
  int64_t num_blocks = 0;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<ListedTensor<1>> tensors;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const View& x = call.inputs[i];
      const bool local = call.attrs.has("counts");
      const int64_t count = local ? call.attrs.integers("counts")[i] : x.shape.num_elements();
      if (x.dtype == dtype) tensors.push_back({{x.data}, count});
    }
    for_each_list<1>(
        static_cast<int64_t>(tensors.size()), kFlatGranule, [&](int64_t i) { return tensors[i]; },
        [&](const TensorList<1>& list) {
          const int64_t blocks =
              std::min({int64_t{blocks_for(list.num_segments(), kWarps)}, resident, kMaxBlocks});
          with_type(dtype, [&](auto type) {
            launch(call, static_cast<unsigned>(blocks), kThreads, add_segments<decltype(type)>,
                   list, block_bins + num_blocks, stride);
          });
          num_blocks += blocks;
        });
  }
  launch(call, kBins, kThreads, add_blocks, block_bins, stride, num_blocks,
         call.outputs[0].as<double>());
}

}  // namespace

void add_sum_squares_cuda_kernels(KernelTable& table) {
  table["sum_squares"] = {.run = run, .prepare = prepare};
}

}  // namespace skein

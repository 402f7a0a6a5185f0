#include "skein/base/error.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/tensor_list_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int kPack = kPackOf<float>;
constexpr int kPacks = 4;  // of each operand, a thread
constexpr int kSegment = kThreads * kPack * kPacks;

template <bool kMerge, int n>
__device__ void fold_packs(float* level, float* gradient, int count) {
  constexpr int kSteps = kSegment / (kThreads * n);
  constexpr int kAtOnce = kSteps < kPacks ? kSteps : kPacks;
  for (int step = 0; step < kSteps; step += kAtOnce) {
    Pack<float, n> levels[kAtOnce], gradients[kAtOnce];
    const int first = (step * kThreads + static_cast<int>(threadIdx.x)) * n;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreads * n;
      if (at >= count) continue;
      if constexpr (kMerge) levels[i] = load_pack<n>(level + at);
      gradients[i] = load_pack<n>(gradient + at);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreads * n;
      if (at >= count) continue;
      if constexpr (kMerge) {
        for (int j = 0; j < n; ++j) gradients[i].at[j] = levels[i].at[j] + gradients[i].at[j];
        store_pack(gradient + at, gradients[i]);
      } else {
        store_pack(level + at, gradients[i]);
        store_pack(gradient + at, Pack<float, n>{});
      }
    }
  }
}

// A block folds one segment.
template <bool kMerge>
__global__ void __launch_bounds__(kThreads) fold_segments(const TensorList<2> list) {
  wait_for_previous_kernel();
  const TensorSegment segment = list.segment(blockIdx.x);
  float* level = static_cast<float*>(list.data[0][segment.tensor]) + segment.begin;
  float* gradient = static_cast<float*>(list.data[1][segment.tensor]) + segment.begin;
  const int count = static_cast<int>(segment.count);
  const auto bits = reinterpret_cast<uintptr_t>(level) | reinterpret_cast<uintptr_t>(gradient);
  if (bits % 16 == 0 && count % kPack == 0) {
    fold_packs<kMerge, kPack>(level, gradient, count);
  } else {
    fold_packs<kMerge, 1>(level, gradient, count);
  }
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fold] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

void run(const KernelCall& call) {
  const bool merges = call.attrs.text("mode") == "merge";
  for_each_list<2>(
      static_cast<int64_t>(call.outputs.size() / 2), kSegment,
      [&](int64_t i) {
        const View &level = call.outputs[2 * i], &gradient = call.outputs[2 * i + 1];
        return ListedTensor<2>{{level.data, gradient.data}, gradient.shape.num_elements()};
      },
      [&](const TensorList<2>& list) {
        launch(call, static_cast<unsigned>(list.num_segments()), kThreads,
               merges ? fold_segments<true> : fold_segments<false>, list);
      });
}

}  // namespace

void add_fold_cuda_kernels(KernelTable& table) { table["fold"] = {.run = run, .prepare = prepare}; }

}  // namespace skein

#include "skein/base/error.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/tensor_list_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int64_t kSegmentBytes = 32 << 10;

// A block clears one segment: 16 bytes at a time where they are aligned, single ones at both ends.
__global__ void __launch_bounds__(kThreads) zero_segments(const TensorList<1> list) {
  wait_for_previous_kernel();
  using Bytes = Pack<uint8_t, 16>;
  const TensorSegment segment = list.segment(blockIdx.x);
  uint8_t* const begin = static_cast<uint8_t*>(list.data[0][segment.tensor]) + segment.begin;
  const int count = static_cast<int>(segment.count), thread = static_cast<int>(threadIdx.x);
  const int unaligned = static_cast<int>(-reinterpret_cast<uintptr_t>(begin) % sizeof(Bytes));
  const int head = unaligned < count ? unaligned : count;
  const int tail = count - (count - head) % static_cast<int>(sizeof(Bytes));
#pragma unroll 8
  for (int at = head + thread * 16; at < tail; at += kThreads * 16) {
    store_pack(begin + at, Bytes{});
  }
  if (thread < head) begin[thread] = 0;
  if (tail + thread < count) begin[tail + thread] = 0;
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fill_zero] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

void run(const KernelCall& call) {
  for_each_list<1>(
      static_cast<int64_t>(call.outputs.size()), kSegmentBytes,
      [&](int64_t i) {
        return ListedTensor<1>{{call.outputs[i].data}, call.outputs[i].num_bytes()};
      },
      [&](const TensorList<1>& list) {
        launch(call, static_cast<unsigned>(list.num_segments()), kThreads, zero_segments, list);
      });
}

}  // namespace

void add_fill_zero_cuda_kernels(KernelTable& table) {
  table["fill_zero"] = {.run = run, .prepare = prepare};
  table["zeros"] = {.run = run, .prepare = prepare};
}

}  // namespace skein

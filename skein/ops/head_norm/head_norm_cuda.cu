#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/head_norm/head_norm_cuda_rules.h"

namespace skein {
namespace {

using namespace cuda;            // NOLINT(google-build-using-namespace)
using namespace head_norm_cuda;  // NOLINT(google-build-using-namespace)

constexpr int kWarps = 8;  // of a block

// Heads are numbered token after token. The grid covers them, and a warp has one at a time.
template <typename T>
struct HeadsOf {
  T* data;
  int64_t row_stride;
  int heads, head_dim;
  __device__ T* at(int64_t index) const {
    return data + index / heads * row_stride + index % heads * head_dim;
  }
};
template <typename T>
HeadsOf<T> heads_of(const View& view, int64_t head_dim) {
  return {view.as<T>(), view.row_stride, static_cast<int>(view.cols() / head_dim),
          static_cast<int>(head_dim)};
}

template <typename T, typename W>
__global__ void forward(HeadsOf<const T> x, const W* w, HeadsOf<T> y, HeadsOf<float> rstd,
                        int64_t count, float epsilon) {
  wait_for_previous_kernel();
  const int64_t index = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32, head_dim = x.head_dim;
  if (index >= count) return;
  const T* from = x.at(index);
  float squares = 0;
  for (int i = lane; i < head_dim; i += 32) {
    const float value = to_float(from[i]);
    squares = fmaf(value, value, squares);
  }
  const float scale =
      1.0f / sqrtf(warp_reduce(squares, Sum()) / static_cast<float>(head_dim) + epsilon);
  if (lane == 0) *rstd.at(index) = scale;
  T* to = y.at(index);
  for (int i = lane; i < head_dim; i += 32) {
    to[i] = from_float<T>(to_float(from[i]) * scale * to_float(w[i]));
  }
}

constexpr int kColumns = 256;  // of dw at a time; nearly always all of them

// A block has kGroup heads. A warp takes every kWarps-th of them; the warps' sums are added in
// order. `partial` [blocks, head_dim].
template <typename T, typename W>
__global__ void backward(HeadsOf<const T> dy, HeadsOf<const T> x, HeadsOf<const float> rstd,
                         const W* w, HeadsOf<T> dx, float* partial, int64_t count) {
  wait_for_previous_kernel();
  __shared__ float of_warps[kWarps][kColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head_dim = x.head_dim;
  const int64_t begin = int64_t{blockIdx.x} * kGroup;
  const int64_t end = begin + kGroup < count ? begin + kGroup : count;
  for (int64_t index = begin + warp; index < end; index += kWarps) {
    const T *grad = dy.at(index), *value = x.at(index);
    const float scale = *rstd.at(index);
    float dot = 0;
    for (int i = lane; i < head_dim; i += 32) {
      dot = fmaf(to_float(grad[i]) * to_float(value[i]), to_float(w[i]), dot);
    }
    const float mean = warp_reduce(dot, Sum()) / static_cast<float>(head_dim);
    const float along_x = scale * scale * scale * mean;
    T* to = dx.at(index);
    for (int i = lane; i < head_dim; i += 32) {
      const float dn = to_float(grad[i]) * to_float(w[i]);
      to[i] = from_float<T>(fmaf(-to_float(value[i]), along_x, dn * scale));
    }
  }
  for (int first = 0; first < head_dim; first += kColumns) {
    const int last = first + kColumns < head_dim ? first + kColumns : head_dim;
    for (int i = first + lane; i < last; i += 32) {
      float sum = 0;
      for (int64_t index = begin + warp; index < end; index += kWarps) {
        const float product = to_float(dy.at(index)[i]) * to_float(x.at(index)[i]);
        sum = fmaf(product, *rstd.at(index), sum);
      }
      of_warps[warp][i - first] = sum;
    }
    __syncthreads();
    for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kWarps * 32) {
      float sum = 0;
      for (int other = 0; other < kWarps; ++other) sum += of_warps[other][i - first];
      partial[int64_t{blockIdx.x} * head_dim + i] = sum;
    }
    __syncthreads();
  }
}

// sum[i] += partial[0][i] + partial[1][i] + ...; a block adds one column.
__global__ void add_partials(const float* partial, int64_t blocks, int head_dim, float* sum) {
  wait_for_previous_kernel();
  float mine = 0;
  for (int64_t block = threadIdx.x; block < blocks; block += blockDim.x) {
    mine += partial[block * head_dim + blockIdx.x];
  }
  const float total = block_sum(mine);
  if (threadIdx.x == 0) sum[blockIdx.x] += total;
}

template <typename T, typename W>
void run_as(const KernelCall& call) {
  const int64_t head_dim = head_dim_of(call), count = num_heads(call);
  launch(call, blocks_for(count, kWarps), kWarps * 32, forward<T, W>,
         heads_of<const T>(call.inputs[0], head_dim), call.inputs[1].as<const W>(),
         heads_of<T>(call.outputs[0], head_dim), heads_of<float>(call.outputs[1], 1), count,
         static_cast<float>(call.attrs.real("epsilon")));
}

template <typename T, typename W>
void run_backward_as(const KernelCall& call) {
  const int64_t head_dim = head_dim_of(call), count = num_heads(call);
  float* partial = static_cast<float*>(call.scratch);
  const auto blocks = static_cast<unsigned>(num_groups(call));
  launch(call, blocks, kWarps * 32, backward<T, W>, heads_of<const T>(call.inputs[0], head_dim),
         heads_of<const T>(call.inputs[1], head_dim), heads_of<const float>(call.inputs[2], 1),
         call.inputs[3].as<const W>(), heads_of<T>(call.outputs[0], head_dim), partial, count);
  launch(call, static_cast<unsigned>(head_dim), 256, add_partials,
         static_cast<const float*>(partial), int64_t{blocks}, static_cast<int>(head_dim),
         call.outputs[1].as<float>());
}

template <typename Function>
void with_types(const View& rows, const View& weight, const Function& function) {
  with_type(rows.dtype,
            [&](auto row) { with_type(weight.dtype, [&](auto w) { function(row, w); }); });
}

void run(const KernelCall& call) {
  with_types(call.outputs[0], call.inputs[1],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
}

void run_backward(const KernelCall& call) {
  with_types(call.outputs[0], call.inputs[3],
             [&](auto row, auto w) { run_backward_as<decltype(row), decltype(w)>(call); });
}

}  // namespace

void add_head_norm_cuda_kernels(KernelTable& table) {
  table["head_norm"] = {.run = run};
  table["head_norm_backward"] = {.run = run_backward};
}

}  // namespace skein

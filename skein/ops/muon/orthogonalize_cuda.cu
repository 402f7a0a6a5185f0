#include "skein/base/error.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"
#include "skein/ops/muon/muon.h"
#include "skein/ops/muon/muon_cuda_rules.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using muon_cuda::kNormSegment;

constexpr int kThreads = 256;
constexpr int kBlocksEach = 6;  // of a multiprocessor

// A block adds the squares of one segment, whatever blocks there are: the same bits on any GPU.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    sum_segment(const T* x, int64_t elements, double* partial_sums) {
  wait_for_previous_kernel();
  const int64_t begin = blockIdx.x * kNormSegment;
  const int64_t end = begin + kNormSegment < elements ? begin + kNormSegment : elements;
  double sum = 0;
  for (int64_t at = begin + threadIdx.x; at < end; at += kThreads) {
    const double value = to_float(x[at]);
    sum = fma(value, value, sum);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_segments(const double* partial_sums, int64_t num_segments, float* norm) {
  wait_for_previous_kernel();
  double sum = 0;
  for (int64_t i = threadIdx.x; i < num_segments; i += kThreads) sum += partial_sums[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const double root = sqrt(sum);
  *norm = static_cast<float>(root > NewtonSchulz::kLeastNorm ? root : NewtonSchulz::kLeastNorm);
}

// to = from / norm
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    divide(T* to, const T* from, const float* norm, int64_t elements) {
  wait_for_previous_kernel();
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < elements;
       at += int64_t{gridDim.x} * kThreads) {
    to[at] = from_float<T>(__fdiv_rn(to_float(from[at]), *norm));
  }
}

// to = a from + b other
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    combine(T* to, const T* from, const float* other, float a, float b, int64_t elements) {
  wait_for_previous_kernel();
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < elements;
       at += int64_t{gridDim.x} * kThreads) {
    to[at] = from_float<T>(__fmaf_rn(b, other[at], __fmul_rn(a, to_float(from[at]))));
  }
}

unsigned blocks_of(int64_t elements) {
  return std::min(blocks_for(elements, kThreads), resident_blocks(kBlocksEach));
}

template <typename T>
class Iteration {
 public:
  explicit Iteration(const KernelCall& call)
      : call_(call),
        sizes_(call.outputs[0].shape),
        scratch_(sizes_, call.outputs[0].dtype),
        x_(call.outputs[0].as<T>()) {}

  void begin() const {
    const T* direction = call_.inputs[0].as<const T>();
    double* partial_sums = at<double>(scratch_.partial_sums);
    float* norm = at<float>(scratch_.norm);
    launch(call_, static_cast<unsigned>(scratch_.num_segments), kThreads, sum_segment<T>, direction,
           sizes_.elements(), partial_sums);
    launch(call_, 1, kThreads, add_segments, partial_sums, scratch_.num_segments, norm);
    launch(call_, blocks_of(sizes_.elements()), kThreads, divide<T>, x_, direction, norm,
           sizes_.elements());
  }

  void step() const {
    T *gram = at<T>(scratch_.gram), *polynomial = at<T>(scratch_.polynomial);
    float *gram_square = at<float>(scratch_.gram_square), *product = at<float>(scratch_.product);
    const int64_t small = sizes_.small;
    const CudaMatmulOperand x = operand(x_, sizes_.cols, sizes_.is_tall);
    multiply(small, small, sizes_.large, x, x, gram, dtype());
    multiply(small, small, small, operand(gram, small, false), operand(gram, small, true),
             gram_square, DType::kF32);
    launch(call_, blocks_of(sizes_.gram_elements()), kThreads, combine<T>, polynomial, gram,
           gram_square, NewtonSchulz::kB, NewtonSchulz::kC, sizes_.gram_elements());
    const CudaMatmulOperand factor = operand(polynomial, small, sizes_.is_tall);
    const CudaMatmulOperand other = operand(x_, sizes_.cols, !sizes_.is_tall);
    multiply(sizes_.rows, sizes_.cols, small, sizes_.is_tall ? other : factor,
             sizes_.is_tall ? factor : other, product, DType::kF32);
    launch(call_, blocks_of(sizes_.elements()), kThreads, combine<T>, x_, x_, product,
           NewtonSchulz::kA, 1.0f, sizes_.elements());
  }

 private:
  template <typename U>
  U* at(int64_t place) const {
    return reinterpret_cast<U*>(static_cast<char*>(call_.scratch) + place);
  }
  DType dtype() const { return call_.outputs[0].dtype; }

  CudaMatmulOperand operand(const T* data, int64_t stride, bool depth_is_row) const {
    return {.data = data, .dtype = dtype(), .row_stride = stride, .depth_is_row = depth_is_row};
  }

  void multiply(int64_t rows, int64_t cols, int64_t depth, const CudaMatmulOperand& a,
                const CudaMatmulOperand& b, void* out, DType out_dtype) const {
    CudaMatmul matmul{rows, cols, depth};
    matmul.a = a;
    matmul.b = b;
    matmul.c = {out, out_dtype, cols};
    run_cuda_matmul(matmul, at<char>(scratch_.workspace), call_.stream);
  }

  const KernelCall& call_;
  const OrthogonalizeSizes sizes_;
  const muon_cuda::Scratch scratch_;
  T* const x_;
};

std::shared_ptr<const void> prepare(const KernelCall& call) {
  if (!call.inputs[0].is_contiguous() || !call.outputs[0].is_contiguous()) {
    fail(ErrorCode::kInternal, "[orthogonalize] a matrix has gaps between its rows");
  }
  return nullptr;
}

void run(const KernelCall& call) {
  const View& y = call.outputs[0];
  if (call.attrs.has("is_owner") && !call.attrs.flag("is_owner")) {
    check(cudaMemsetAsync(y.data, 0, y.num_bytes(), stream_of(call)), "clearing a matrix");
    return;
  }
  with_type(y.dtype, [&](auto type) {
    const Iteration<decltype(type)> iteration(call);
    iteration.begin();
    for (int i = 0; i < NewtonSchulz::kSteps; ++i) iteration.step();
  });
}

// On every rank, whoever the owner is: the ranks of a run share their choices.
void choose(const KernelCall& call) {
  const OnlyChooseCudaMatmuls only_choose;
  with_type(call.outputs[0].dtype, [&](auto type) { Iteration<decltype(type)>(call).step(); });
}

}  // namespace

void add_orthogonalize_cuda_kernel(KernelTable& table) {
  table["orthogonalize"] = {.run = run, .prepare = prepare, .choose = choose};
}

}  // namespace skein

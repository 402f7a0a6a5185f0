// C (+)= A B (+ bias) on a GPU, through cuBLASLt: the matrix product of the CUDA kernels.
//
// Operands     A, B bf16 and C bf16 or f32; or all f32, multiplied as such, never as TF32. Any row
//              stride and alignment; rows that begin at multiples of 16 bytes are several times
//              faster. Or A and B of 8 bits, not both E5M2, depth the inner dim: fast where depth
//              and columns are multiples of kFp8Multiple, rows (of C too) begin at multiples of
//              16 bytes, and C is bf16 or has no bias; elsewhere our own kernel multiplies, slowly.
// Accumulation fp32, rounded once when stored. Tensor cores of Hopper add 8-bit products with about
//              14 bits (arXiv:2412.19437, 3.5.2). With `fast_accumulation` cuBLASLt leaves it at
//              that and is faster; without, sums move on to fp32 before they are long.
// Algorithm    Of each problem (sizes, dtypes, strides, alignments, epilogue) the one that a run
//              has adopted (ops/algorithms.h): the same whether C is added to or counts as zero.
//              Else what this machine measured before, in
//              ${SKEIN_CACHE:-$HOME/.cache/skein}/cublaslt-algorithms.jsonl, by GPU, driver,
//              library and problem; else what is fastest of cuBLASLt's proposals, measured now in
//              the place of its operands, which takes some milliseconds and is kept in that file.
//              Nothing is measured, and cuBLASLt's first proposal taken, with SKEIN_TUNE=off, where
//              that file cannot be written, and while a stream captures.
// Same bits    from every run with the same choices: no algorithm uses atomics or splits sums by
//              chance. Algorithms add in different orders, so that choices belong to a run: its
//              ranks share them and its checkpoints keep them (train/start/run_algorithms.h).
// Errors       Error{kUnsupported} where cuBLASLt is not installed; kInternal with what it says
// Threads      any number
#pragma once

#include <memory>
#include <optional>

#include "skein/base/files/file.h"
#include "skein/ops/algorithms.h"
#include "skein/ops/matmul/matmul_cuda_rules.h"
#include "skein/ops/matmul/matmul_kernel.h"
#include "skein/tensor/fp8.h"

namespace skein {

struct CudaMatmulOperand {
  const void* data = nullptr;
  DType dtype = DType::kBF16;
  int64_t row_stride = 0;  // elements
  // In memory [depth, rows of C] or [depth, cols of C]; otherwise depth is the inner one.
  bool depth_is_row = false;
  // Elements are of this format instead, and stand for their values times *inverse_scale, which is
  // on the device.
  std::optional<Fp8Format> fp8 = {};
  const float* inverse_scale = nullptr;
};

struct CudaMatmul {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth = 0;
  CudaMatmulOperand a;
  CudaMatmulOperand b;
  MatmulStore c;
  bool fast_accumulation = false;  // of 8-bit operands; others know no such thing
};

// The products of one GPU, the current one where it is made and used.
class CudaMatmuls {
 public:
  // Where algorithms are kept; empty: nothing is measured.
  explicit CudaMatmuls(const fs::path& cache_file);
  ~CudaMatmuls();
  CudaMatmuls(const CudaMatmuls&) = delete;
  CudaMatmuls& operator=(const CudaMatmuls&) = delete;

  // Enqueues it on `stream`; `scratch` of cuda_matmul_scratch_bytes().
  void run(const CudaMatmul& matmul, void* scratch, void* stream);
  // Only settles which algorithm run() takes; C stays as it is where it is added to.
  void choose(const CudaMatmul& matmul, void* scratch, void* stream);

  AlgorithmChoices choices() const;
  void adopt(const AlgorithmChoices& choices);

 private:
  struct Ready;
  struct State;
  Ready make_ready(const CudaMatmul& matmul, void* scratch, void* stream);
  std::unique_ptr<State> state_;
};

// With the CudaMatmuls that this process has for the current GPU, as the environment asks.
void run_cuda_matmul(const CudaMatmul& matmul, void* scratch, void* stream);

// While one lives, run_cuda_matmul of its thread only chooses.
class OnlyChooseCudaMatmuls {
 public:
  OnlyChooseCudaMatmuls();
  ~OnlyChooseCudaMatmuls();
  OnlyChooseCudaMatmuls(const OnlyChooseCudaMatmuls&) = delete;
  OnlyChooseCudaMatmuls& operator=(const OnlyChooseCudaMatmuls&) = delete;
};

}  // namespace skein

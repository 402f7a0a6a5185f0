// The operands of linear and its derivatives on a GPU: as they are or, in the `fp8` mode, copies in
// scratch memory.
//
// Copies  Each group (skein/ops/linear/fp8_operands.h) is one matrix, its parts side by side or
//         below each other. Where sizes are multiples of kFp8Multiple they have 8 bits an
//         element and the summed dim inside, as cuBLASLt wants it: dy of linear_dx_dw, which is
//         summed over either dim, has two. Elsewhere they are bf16, which holds the same numbers,
//         for ordinary products.
// Kept    Weights that round_weights has rounded are read where they lie: they have both copies
// Cost    operands are read once, for all copies
#pragma once

#include <string_view>
#include <vector>

#include "skein/ir/kernel.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/matmul/matmul_cuda.h"

namespace skein {

namespace fp8_parts {

// Between inverse scales, which cuBLASLt wants at multiples of 16 bytes: it has no algorithm for a
// product with one that is not.
inline constexpr int kScaleStride = 16 / sizeof(float);

}  // namespace fp8_parts

// All but make() is host code of every build.
class CudaLinearOperands {
 public:
  // For "linear", "linear_dx", "linear_dw" or "linear_dx_dw". `call` may have null addresses, and
  // must outlive it.
  CudaLinearOperands(const KernelCall& call, std::string_view op);

  // Whether the parts of a group are one matrix however they lie in the call.
  bool are_copies() const { return !groups_.empty(); }
  // Whether the op's products read 8 bits an element; else their copies are bf16.
  bool are_in_8_bits() const { return in_8_bits_; }
  // The copies lie at the front of the call's scratch. A pure function of shapes.
  int64_t num_bytes() const { return num_bytes_; }
  void* rest_of_scratch() const { return static_cast<char*>(call_.scratch) + num_bytes_; }

  // Enqueues the kernels that make the copies, where there are copies.
  void make() const;
  // An input, together with those that follow it in one matrix. `depth_is_row`: the product sums
  // over its rows.
  CudaMatmulOperand of(int input, bool depth_is_row) const;

 private:
  struct Copy {
    int64_t offset = -1;  // in scratch, or in what is kept; negative: there is none
    int64_t row_stride = 0;
  };
  struct Group : Fp8Group {
    Copy as_is, transposed;
    bool is_kept = false;
  };
  bool is_summed_over_cols(int input) const;
  bool is_summed_over_rows(int input) const;
  bool is_side_by_side(int input) const;  // with the others of its group; else below each other
  Copy add_copy(int64_t rows, int64_t cols);
  int group_with(int input) const;
  void* copy_of(int input, bool transposed) const;
  float* inverse_scales() const { return static_cast<float*>(call_.scratch); }

  const KernelCall& call_;
  const std::string_view op_;
  const int parts_;
  bool in_8_bits_ = false;
  std::vector<Group> groups_;  // none where nothing is copied
  int64_t num_bytes_ = 0;
};

void run_round_weights_on_cuda(const KernelCall& call);
void run_fp8_largest_on_cuda(const KernelCall& call);

}  // namespace skein

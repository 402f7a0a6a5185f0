// The operands of linear and its derivatives on a GPU: as they are or, in the `fp8` mode, copies in
// scratch memory.
//
// Copies  Each group (skein/ops/linear/fp8_operands.h) is one matrix, its parts side by side or
//         below each other. Where sizes are multiples of kCudaFp8Multiple they have 8 bits an
//         element and the summed dim inside, as cuBLASLt wants it. Elsewhere they are bf16, which
//         holds the same numbers, for an ordinary product.
// Cost    operands are read twice: for the largest magnitude, which sets the scale, and to be
//         rounded
#pragma once

#include <string_view>
#include <vector>

#include "skein/ir/kernel.h"
#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/matmul/matmul_cuda.h"

namespace skein {

class CudaLinearOperands {
 public:
  // For "linear", "linear_dx" or "linear_dw". `call` may have null addresses, and must outlive it.
  CudaLinearOperands(const KernelCall& call, std::string_view op);

  // Whether the parts of a group are one matrix however they lie in the call.
  bool are_copies() const { return !groups_.empty(); }
  // The copies lie at the front of the call's scratch. A pure function of shapes.
  int64_t num_bytes() const { return num_bytes_; }
  void* rest_of_scratch() const { return static_cast<char*>(call_.scratch) + num_bytes_; }

  // Enqueues the kernels that make the copies, where there are copies.
  void make() const;
  // An input, together with those that follow it in one matrix.
  CudaMatmulOperand of(int input) const;

 private:
  struct Group : Fp8Group {
    int64_t offset = 0;      // of the copy, in scratch
    int64_t row_stride = 0;  // of the copy
  };
  bool depth_is_row(int input) const;
  bool is_side_by_side(int input) const;  // with the others of its group; else below each other
  bool is_transposed(int input) const { return in_8_bits_ && depth_is_row(input); }
  int group_with(int input) const;
  void* copy_of(int input) const;
  unsigned* largest() const { return static_cast<unsigned*>(call_.scratch); }
  float* inverse_scales() const { return reinterpret_cast<float*>(largest() + 2); }

  const KernelCall& call_;
  const std::string_view op_;
  const int parts_;
  bool in_8_bits_ = false;
  std::vector<Group> groups_;  // two, or none where nothing is copied
  int64_t num_bytes_ = 0;
};

}  // namespace skein

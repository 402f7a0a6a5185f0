#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/ops/linear/adjacent.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/linear/operands_cuda.h"

namespace skein {
namespace {

constexpr int64_t kHeaderBytes = 64;  // inverse scales
static_assert(kMaxFp8Groups * fp8_parts::kScaleStride * sizeof(float) <= kHeaderBytes);
constexpr int64_t kAlignment = 64;
constexpr int64_t kRowMultiple = 8;  // elements of copies in bf16: 16 bytes

bool is_multiple(int64_t size) { return size % kFp8Multiple == 0; }

// Whether depth and the columns of every output are multiples that 8-bit products need.
bool fits_8_bits(const KernelCall& call, std::string_view op, int parts) {
  if (op == "linear_dx_dw") {
    return fits_8_bits(adjacent::dx_of(call), "linear_dx", parts) &&
           fits_8_bits(adjacent::dw_of(call), "linear_dw", parts);
  }
  if (op == "linear_dw") {
    const View& x = call.inputs[parts];
    return is_multiple(x.rows()) && is_multiple(x.cols());
  }
  const bool bias = op == "linear" && call.attrs.flag("bias");
  if (bias && call.outputs[0].dtype != DType::kBF16) return false;
  const auto weights = call.inputs.begin() + (op == "linear" ? 1 : parts);
  return std::all_of(weights, weights + parts,
                     [](const View& w) { return is_multiple(w.rows()) && is_multiple(w.cols()); });
}

}  // namespace

CudaLinearOperands::CudaLinearOperands(const KernelCall& call, std::string_view op)
    : call_(call), op_(op), parts_(adjacent::num_parts(call)) {
  if (!is_fp8(call.attrs)) return;
  in_8_bits_ = fits_8_bits(call, op, parts_);
  num_bytes_ = kHeaderBytes;
  for (const Fp8Group& of : fp8_groups(op, parts_)) {
    Group& group = groups_.emplace_back(Group{of});
    int64_t rows = 0, cols = 0;
    for (int i = of.begin; i < of.begin + of.count; ++i) {
      const View& part = call.inputs[i];
      rows = is_side_by_side(i) ? part.rows() : rows + part.rows();
      cols = is_side_by_side(i) ? cols + part.cols() : part.cols();
    }
    if (groups_.size() == kFp8Weights + 1 && has_kept_weights(call.attrs, op)) {
      if (!in_8_bits_) fail(ErrorCode::kInternal, "[{}] keeps weights of sizes not in 8 bits", op);
      group.is_kept = true;
      group.as_is = {0, cols};
      group.transposed = {rows * cols, rows};
      continue;
    }
    if (!in_8_bits_ || is_summed_over_cols(of.begin)) group.as_is = add_copy(rows, cols);
    if (in_8_bits_ && is_summed_over_rows(of.begin)) group.transposed = add_copy(cols, rows);
  }
}

CudaLinearOperands::Copy CudaLinearOperands::add_copy(int64_t rows, int64_t cols) {
  const Copy copy = {num_bytes_, in_8_bits_ ? cols : round_up(cols, kRowMultiple)};
  num_bytes_ += round_up(rows * copy.row_stride * (in_8_bits_ ? 1 : 2), kAlignment);
  return copy;
}

bool CudaLinearOperands::is_summed_over_cols(int input) const {
  return op_ == "linear" || (op_ != "linear_dw" && input < parts_);
}

bool CudaLinearOperands::is_summed_over_rows(int input) const {
  return op_ == "linear_dw" || op_ == "linear_dx_dw" || (op_ == "linear_dx" && input >= parts_);
}

bool CudaLinearOperands::is_side_by_side(int input) const {
  return op_ != "linear" && input < parts_;
}

int CudaLinearOperands::group_with(int input) const {
  int g = 0;
  while (input >= groups_[g].begin + groups_[g].count) ++g;
  return g;
}

void* CudaLinearOperands::copy_of(int input, bool transposed) const {
  const Group& group = groups_[group_with(input)];
  const Copy& copy = transposed ? group.transposed : group.as_is;
  if (copy.offset < 0) return nullptr;
  int64_t before = 0;
  for (int i = group.begin; i < input; ++i) {
    before += is_side_by_side(i) ? call_.inputs[i].cols() : call_.inputs[i].rows();
  }
  if (is_side_by_side(input) == transposed) before *= copy.row_stride;
  void* const base = group.is_kept ? call_.inputs.back().data : call_.scratch;
  return static_cast<char*>(base) + copy.offset + before * (in_8_bits_ ? 1 : 2);
}

CudaMatmulOperand CudaLinearOperands::of(int input, bool depth_is_row) const {
  const View& view = call_.inputs[input];
  if (!are_copies()) return {view.data, view.dtype, view.row_stride, depth_is_row};
  const int g = group_with(input);
  const bool transposed = in_8_bits_ && depth_is_row;
  const Copy& copy = transposed ? groups_[g].transposed : groups_[g].as_is;
  CudaMatmulOperand operand = {copy_of(input, transposed), DType::kBF16, copy.row_stride};
  if (in_8_bits_) {
    operand.fp8 = groups_[g].format;
    operand.inverse_scale = inverse_scales() + g * fp8_parts::kScaleStride;
  } else {
    operand.depth_is_row = depth_is_row;
  }
  return operand;
}

}  // namespace skein

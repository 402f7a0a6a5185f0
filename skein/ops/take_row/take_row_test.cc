#include "skein/ops/take_row/take_row.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t last = in[0].shape.dim(0) - 1;
  const int64_t row = std::clamp<int64_t>(static_cast<int64_t>(in[1][0]), 0, last);
  std::vector<double> y;
  for (int64_t col = 0; col < in[0].shape.dim(1); ++col) y.push_back(in[0].at(row, col));
  return {y};
}

TEST(TakeRow, MeetsItsReferenceAndStaysInside) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const double index : {0.0, 3.0, 4.0, 5.0, -1.0, 2147483647.0, -2147483648.0}) {
      check_op({.op = &kTakeRow,
                .inputs = {random_tensor(dtype, {5, 9}),
                           make_tensor(DType::kI32, {1}, [&](int64_t) { return index; })},
                .reference = reference,
                .tolerance = 0});
    }
  }
}

}  // namespace
}  // namespace skein

#include "skein/ops/add/add.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  std::vector<double> y(in[0].values.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i] + in[1][i];
  return {y};
}

TEST(Add, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{17, 33}, Shape{64, 128}}) {
      check_op({.op = &kAdd,
                .inputs = {random_tensor(dtype, shape, 1), random_tensor(dtype, shape, 2)},
                .reference = reference});
    }
  }
}

TEST(Add, RefusesOtherShapes) {
  EXPECT_THROW(
      check_op({.op = &kAdd,
                .inputs = {random_tensor(DType::kF32, {3, 4}), random_tensor(DType::kF32, {4, 3})},
                .reference = reference}),
      Error);
}

}  // namespace
}  // namespace skein

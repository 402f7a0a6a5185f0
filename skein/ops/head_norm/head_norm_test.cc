#include "skein/ops/head_norm/head_norm.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

constexpr double kEpsilon = 1e-3;

OpCase make_case(DType dtype, DType weight_dtype, int64_t rows, int64_t heads, int64_t head_dim) {
  OpCase test{.op = &kHeadNorm, .attrs = {{"head_dim", head_dim}, {"epsilon", kEpsilon}}};
  test.reference = [=](const Tensors& in) -> Outputs {
    std::vector<double> y(rows * heads * head_dim), rstd(rows * heads);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < heads; ++head) {
        double squares = 0;
        for (int64_t i = 0; i < head_dim; ++i) {
          const double value = in[0].at(row, head * head_dim + i);
          squares += value * value;
        }
        const double scale = 1 / std::sqrt(squares / head_dim + kEpsilon);
        rstd[row * heads + head] = scale;
        for (int64_t i = 0; i < head_dim; ++i) {
          const int64_t col = head * head_dim + i;
          y[row * heads * head_dim + col] = in[0].at(row, col) * scale * in[1][i];
        }
      }
    }
    return {y, rstd};
  };
  test.inputs = {random_tensor(dtype, {rows, heads * head_dim}, 1),
                 random_tensor(weight_dtype, {head_dim}, 2, 1.0, Role::kParameter)};
  test.tolerance = dtype == DType::kBF16 ? 4e-3 : 1e-6;
  if (head_dim == 1) test.grad_tolerance_f32 = 1e-3;  // dx cancels to almost nothing
  return test;
}

TEST(HeadNorm, MeetsItsReference) {
  struct {
    int64_t rows, heads, head_dim;
  } const kSizes[] = {{1, 1, 1}, {3, 2, 7}, {130, 3, 33}, {65, 4, 64}, {5, 2, 128}, {70, 1, 300}};
  for (const auto& [rows, heads, head_dim] : kSizes) {
    check_op(make_case(DType::kF32, DType::kF32, rows, heads, head_dim));
    check_op(make_case(DType::kBF16, DType::kBF16, rows, heads, head_dim));
    check_op(make_case(DType::kBF16, DType::kF32, rows, heads, head_dim));
  }
}

class HeadNormPlacement : public testing::Test {
 protected:
  ValueId input(const char* name, Shape shape, Placement placement) {
    TensorType type = TensorType::replicated(DType::kF32, std::move(shape), graph_.mesh());
    type.placements[1] = placement;
    return graph_.add_input(Role::kInput, name, type);
  }
  Graph graph_{Mesh::standard(1, 2, 1, 1)};
};

TEST_F(HeadNormPlacement, SplitsTokensAndHeads) {
  const ValueId w = input("w", {8}, Placement::replicated());
  for (const Placement placement : {Placement::sharded(0), Placement::sharded(1)}) {
    const ValueId x =
        input(placement == Placement::sharded(0) ? "rows" : "heads", {4, 32}, placement);
    const ValueId y = head_norm(graph_, x, w, 8, 1e-5, "y");
    EXPECT_EQ(graph_.type(y).placements[1], placement);
  }
}

TEST_F(HeadNormPlacement, RefusesAHeadInTwo) {
  const ValueId w = input("w", {8}, Placement::replicated());
  EXPECT_THROW(head_norm(graph_, input("one", {4, 8}, Placement::sharded(1)), w, 8, 1e-5, "y"),
               Error);
  EXPECT_THROW(head_norm(graph_, input("odd", {4, 12}, Placement::replicated()), w, 8, 1e-5, "y"),
               Error);
  EXPECT_THROW(
      head_norm(graph_, input("narrow", {4, 16}, Placement::replicated()), w, 16, 1e-5, "y"),
      Error);
}

}  // namespace
}  // namespace skein

#include "skein/ops/take_rows/take_rows.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t last = in[0].shape.dim(0) - 1;
  std::vector<double> y;
  for (const double index : in[1].values) {
    const int64_t row = std::clamp<int64_t>(static_cast<int64_t>(index), 0, last);
    for (int64_t col = 0; col < in[0].shape.dim(1); ++col) y.push_back(in[0].at(row, col));
  }
  return {y};
}

void check(const std::vector<double>& index, int64_t rows, int64_t cols) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check_op({.op = &kTakeRows,
              .inputs = {random_tensor(dtype, {rows, cols}),
                         make_tensor(DType::kI32, {static_cast<int64_t>(index.size())},
                                     [&](int64_t i) { return index[i]; })},
              .reference = reference,
              .tolerance = 0});
  }
}

TEST(TakeRows, MeetsItsReference) {
  check({3}, 5, 9);
  check({4, 0, 0, 3}, 5, 9);
  check({0, 0, 0}, 1, 1);
  check({6, 2, 5, 1, 4}, 7, 300);
}

TEST(TakeRows, ClampsEveryIndex) {
  check({-1, 4, 5, 2147483647.0, -2147483648.0}, 5, 9);
  check({-2147483648.0}, 5, 9);
}

TEST(TakeRows, SplitsColumnsButNotRows) {
  for (const std::string rows : {"S1", "S0"}) {
    Graph graph(Mesh::standard(1, 1, 1, 2));
    TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
    type.placements[3] = Placement::parse(rows);
    const ValueId x = graph.add_input(Role::kInput, "x", type);
    const ValueId index = graph.add_input(Role::kInput, "index",
                                          TensorType::replicated(DType::kI32, {3}, graph.mesh()));
    if (rows == "S0") {
      EXPECT_THROW(take_rows(graph, x, index, "y"), IllegalCall);
      continue;
    }
    const TensorType& y = graph.type(take_rows(graph, x, index, "y"));
    EXPECT_EQ(y.shape, (Shape{3, 8}));
    EXPECT_EQ(y.placements[3], Placement::sharded(1));
  }
}

}  // namespace
}  // namespace skein

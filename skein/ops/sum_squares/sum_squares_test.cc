#include "skein/ops/sum_squares/sum_squares.h"

#include "skein/base/numbers/exact_sum.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

using Bins = std::vector<double>;
constexpr int kDp = 1, kTp = 3;

double total(const Bins& bins) { return exact_sum::total(bins.data()); }

Tensor parameter(DType dtype, const Shape& shape, uint32_t stream) {
  return random_tensor(dtype, shape, stream, 1.0, Role::kParameter);
}

// The bins that `rank` computes for a tensor with these placements over dp and tp.
Bins bins_of(const Tensor& whole, const Mesh& mesh, Placement over_dp, Placement over_tp,
             int64_t rank) {
  Graph graph(mesh);
  TensorType type = TensorType::replicated(whole.dtype, whole.shape, mesh);
  type.placements[kDp] = over_dp;
  type.placements[kTp] = over_tp;
  const ValueId x = graph.add_input(Role::kParameter, "x", type);
  const ValueId bins = sum_squares(graph, {x}, "bins");
  return GraphRun(graph, {{x, local_part(whole, type, mesh, rank)}}, {.rank = rank}).read(bins);
}

Bins sum_over_ranks(const Tensor& whole, const Mesh& mesh, Placement over_dp, Placement over_tp) {
  Bins sum(exact_sum::kBins, 0.0);
  for (int64_t rank = mesh.num_ranks() - 1; rank >= 0; --rank) {
    exact_sum::add_all(sum.data(), bins_of(whole, mesh, over_dp, over_tp, rank).data());
  }
  return sum;
}

TEST(SumSquares, AddsUpAllSquares) {
  const OpCase test{
      .op = &kSumSquares,
      .inputs = {parameter(DType::kF32, {1}, 1), parameter(DType::kBF16, {3, 7}, 2),
                 parameter(DType::kF32, {65536}, 3), parameter(DType::kBF16, {65537}, 4),
                 parameter(DType::kF32, {401, 333}, 5), parameter(DType::kF32, {31}, 6)},
      .reference = [](const Tensors&) { return Outputs{{}}; }};
  check_op(test);  // the same bits with any number of threads
  double want = 0;
  for (const Tensor& x : test.inputs) {
    for (const double value : x.values) want += value * value;
  }
  const BuiltCase built = build(test, 1);
  const ValueId bins = built.graph.nodes()[0].outputs[0];
  for (const auto& [label, run] : other_runs(built)) {
    EXPECT_NEAR(total(run.read(bins)), want, 1e-13 * want) << label;
  }
}

TEST(SumSquares, IsExactOverSegments) {
  if (test_device().compiles) GTEST_SKIP() << "the squares of subnormals are 0 here";
  // The least f32 and the greatest power of two, whose squares any number of lanes adds up without
  // rounding, in segments of their own.
  const Tensor x = make_tensor(DType::kF32, {3, 1024}, [](int64_t i) {
    return i < 1024 ? 0x1p-149 : i < 2048 ? 0x1p127 : 1.0;
  });
  Bins bins =
      bins_of(x, Mesh::standard(1, 1, 1, 1), Placement::replicated(), Placement::replicated(), 0);
  exact_sum::add(bins.data(), -0x1p127 * 0x1p127 * 1024);
  exact_sum::add(bins.data(), -1024.0);
  EXPECT_EQ(total(bins), 0x1p-288);
}

// A compiler orders the terms of a segment itself: there, to rounding.
void expect_bits(const Bins& got, const Bins& want) {
  if (!test_device().compiles) {
    EXPECT_EQ(got, want);
  } else {
    EXPECT_NEAR(total(got), total(want), 1e-13 * total(want));
  }
}

TEST(SumSquares, OfRangesAndWholeSegmentsHasTheBitsOfTheWhole) {
  const Placement whole = Placement::replicated(), flat = Placement::flat();
  const Placement rows = Placement::sharded(0), cols = Placement::sharded(1);
  for (const Shape& shape : {Shape{12, 1024}, Shape{4, 700}, Shape{4, 8}}) {
    const Tensor x = parameter(DType::kBF16, shape, 7);
    const Bins want = bins_of(x, Mesh::standard(1, 1, 1, 1), whole, whole, 0);
    for (const int64_t degree : {2, 3, 5}) {
      expect_bits(sum_over_ranks(x, Mesh::standard(1, degree, 1, 1), flat, whole), want);
    }
    if (shape.dim(1) % 1024 == 0) {
      expect_bits(sum_over_ranks(x, Mesh::standard(1, 3, 1, 2), flat, rows), want);
      expect_bits(sum_over_ranks(x, Mesh::standard(1, 2, 1, 3), rows, rows), want);
    }
    const Bins other = sum_over_ranks(x, Mesh::standard(1, 2, 1, 2), flat, cols);
    EXPECT_NEAR(total(other), total(want), 1e-14 * total(want));
  }
}

TEST(SumSquares, PaddingDoesNotCount) {
  const Mesh mesh = Mesh::standard(1, 3, 1, 1);
  Graph graph(mesh);
  TensorType type = TensorType::replicated(DType::kF32, {40, 40}, mesh);
  type.placements[kDp] = Placement::flat();
  const ValueId x = graph.add_input(Role::kGradient, "x", type);
  const ValueId bins = sum_squares(graph, {x}, "bins");
  const Tensor ones = make_tensor(DType::kF32, {1024}, [](int64_t) { return 1.0; });
  const double counts[] = {1024, 576, 0};
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(total(GraphRun(graph, {{x, ones}}, {.rank = rank}).read(bins)), counts[rank]);
  }
}

TEST(SumSquares, SplitValuesOweTheirSum) {
  const Mesh mesh = Mesh::standard(2, 2, 1, 2);
  Graph graph(mesh);
  const auto value = [&](const std::string& name, Placement over_dp, Placement over_tp) {
    TensorType type = TensorType::replicated(DType::kF32, {4, 100}, mesh);
    type.placements[kDp] = over_dp;
    type.placements[kTp] = over_tp;
    return graph.add_input(Role::kGradient, name, type);
  };
  const Placement whole = Placement::replicated(), pending = Placement::partial();
  const ValueId r = value("r", whole, whole), s = value("s", whole, Placement::sharded(1));
  const ValueId f = value("f", Placement::flat(), Placement::sharded(0)),
                p = value("p", pending, whole);
  using Want = Placements;
  EXPECT_EQ(graph.type(sum_squares(graph, {r}, "1")).placements,
            (Want{whole, whole, whole, whole}));
  EXPECT_EQ(graph.type(sum_squares(graph, {s}, "2")).placements,
            (Want{whole, whole, whole, pending}));
  EXPECT_EQ(graph.type(sum_squares(graph, {f}, "3")).placements,
            (Want{whole, pending, whole, pending}));
  EXPECT_EQ(graph.type(sum_squares(graph, {s}, "4", "pp")).placements,
            (Want{pending, whole, whole, pending}));
  EXPECT_THROW(sum_squares(graph, {p}, "5"), Error);
  EXPECT_THROW(sum_squares(graph, {r, s}, "6"), Error);
  EXPECT_THROW(sum_squares(graph, {f}, "7", "dp"), Error);
  EXPECT_THROW(sum_squares(graph, {r}, "8", "ep"), Error);
}

}  // namespace
}  // namespace skein

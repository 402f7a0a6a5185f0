#include "skein/ops/muon/muon.h"

#include <gmock/gmock.h>

#include <numeric>

#include "skein/ops/muon/orthogonalize.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;
using testing::ElementsAre;

constexpr double kMomentumFactor = 0.95, kDecay = 0.1, kScale = 0.125, kLearningRate = 0.01;
constexpr int64_t kSeed = 42, kStream = 0xdeadbeef;

Tensor scalar(DType dtype, double value) {
  return make_tensor(dtype, {1}, [=](int64_t) { return value; });
}

OpCase momentum_case(DType moments, DType direction, const Shape& shape) {
  OpCase test{.op = &kMuonMomentum, .tolerance = 1e-6, .phase = Phase::kUpdate};
  test.attrs = {{"momentum", kMomentumFactor},
                {"direction", std::string(dtype_name(direction))},
                {"seed", kSeed},
                {"stream", kStream}};
  test.inputs = {random_tensor(DType::kF32, shape, 2, 1.0, Role::kGradient),
                 random_tensor(moments, shape, 3, 0.1, Role::kOptimizer),
                 scalar(DType::kF32, kScale), scalar(DType::kI32, 3)};
  test.reference = [](const Tensors& in) {
    Outputs out(3);
    for (size_t i = 0; i < in[0].values.size(); ++i) {
      const double g = in[0][i] * in[2][0];
      const double m = in[1][i] + (1 - kMomentumFactor) * (g - in[1][i]);
      out[0].push_back(0);
      out[1].push_back(m);
      out[2].push_back(g + kMomentumFactor * (m - g));
    }
    return out;
  };
  if (moments == DType::kBF16) test.tolerance = 0x1p-8;  // stochastic: off by a whole step
  return test;
}

TEST(MuonMomentum, MeetsItsReference) {
  for (const Shape& shape : {Shape{5, 7}, Shape{3, 16384}, Shape{3, 16385}}) {
    for (const DType moments : {DType::kF32, DType::kBF16}) {
      for (const DType direction : {DType::kF32, DType::kBF16}) {
        check_op(momentum_case(moments, direction, shape));
      }
    }
  }
}

TEST(MuonMomentum, KeepsTheGradientWhereTheNextStepOverwritesIt) {
  OpCase test = momentum_case(DType::kF32, DType::kF32, {3, 701});
  test.attrs.set(std::string(kKeepsGradient), true);
  const BuiltCase built = build(test, 3);
  const GraphRun run(built.graph, built.inputs, {});
  EXPECT_EQ(run.read(built.graph.nodes()[0].outputs[0]), test.inputs[0].values);
}

using Matrix = std::vector<std::vector<double>>;

Matrix transposed(const Matrix& a) {
  Matrix result(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) result[j][i] = a[i][j];
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

void add(Matrix& to, double a, double b, const Matrix& other) {
  for (size_t i = 0; i < to.size(); ++i) {
    for (size_t j = 0; j < to[0].size(); ++j) to[i][j] = a * to[i][j] + b * other[i][j];
  }
}

Outputs orthogonalized(const Tensors& in) {
  const auto rows = static_cast<size_t>(in[0].shape.rows());
  Matrix x(rows, std::vector<double>(static_cast<size_t>(in[0].shape.cols())));
  double squares = 0;
  for (const double value : in[0].values) squares += value * value;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < x[0].size(); ++j) {
      x[i][j] = in[0].at(static_cast<int64_t>(i), static_cast<int64_t>(j)) /
                std::max(std::sqrt(squares), 1e-7);
    }
  }
  const bool is_tall = x.size() > x[0].size();
  if (is_tall) x = transposed(x);
  for (int step = 0; step < 5; ++step) {
    const Matrix gram = product(x, transposed(x));
    Matrix polynomial = gram;
    add(polynomial, -4.7750, 2.0315, product(gram, gram));
    add(x, 3.4445, 1, product(polynomial, x));
  }
  if (is_tall) x = transposed(x);
  Outputs out(1);
  for (const auto& row : x) out[0].insert(out[0].end(), row.begin(), row.end());
  return out;
}

OpCase orthogonalize_case(DType dtype, const Shape& shape) {
  OpCase test{.op = &kOrthogonalize,
              .attrs = {{"over", std::string()}, {"owner", int64_t{0}}},
              .inputs = {random_tensor(dtype, shape, 5)},
              .reference = orthogonalized,
              .phase = Phase::kUpdate};
  // Each of five steps rounds its factors to bf16, and multiplies what was lost by about 3.4.
  test.tolerance = dtype == DType::kF32 ? 1e-4 : 0.05;
  return test;
}

TEST(Orthogonalize, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{5, 7}, Shape{7, 5}, Shape{64, 64}, Shape{48, 130}, Shape{130, 48}}) {
      check_op(orthogonalize_case(dtype, shape));
    }
  }
}

TEST(Orthogonalize, OfZerosIsZero) {
  OpCase test = orthogonalize_case(DType::kF32, {4, 6});
  std::fill(test.inputs[0].values.begin(), test.inputs[0].values.end(), 0.0);
  const BuiltCase built = build(test, 1);
  const GraphRun run(built.graph, built.inputs, {});
  EXPECT_THAT(run.read(built.graph.nodes()[0].outputs[0]), testing::Each(0.0));
}

TEST(Orthogonalize, IsItsOwnersAndZeroElsewhere) {
  const Mesh mesh = Mesh::standard(1, 2, 2, 1);
  const Tensor x = random_tensor(DType::kF32, {6, 9}, 5);
  for (int64_t owner = 0; owner < 4; ++owner) {
    Graph graph(mesh);
    graph.set_phase(Phase::kUpdate);
    const ValueId input =
        graph.add_input(Role::kInput, "x", TensorType::replicated(x.dtype, x.shape, mesh));
    const ValueId y = graph.add1(kOrthogonalize, {input},
                                 {{"over", std::string("dp,cp")}, {"owner", owner}}, "y");
    EXPECT_TRUE(graph.type(y).placements[1].is_partial());
    EXPECT_TRUE(graph.type(y).placements[2].is_partial());
    for (int64_t rank = 0; rank < 4; ++rank) {
      const std::vector<double> values = GraphRun(graph, {{input, x}}, {.rank = rank}).read(y);
      const bool is_zero =
          std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
      EXPECT_EQ(is_zero, rank != owner) << rank;
    }
  }
}

OpCase apply_case(DType weight, bool master, bool stochastic, const Shape& shape) {
  OpCase test{.op = &kMuonApply, .tolerance = 1e-6, .phase = Phase::kUpdate};
  test.attrs = {{"weight_decay", kDecay},
                {"update_scale", muon_update_scale(shape)},
                {"stochastic_rounding", stochastic},
                {"seed", kSeed},
                {"stream", kStream}};
  test.inputs = {random_tensor(weight, shape, 1, 1.0, Role::kParameter),
                 random_tensor(weight, shape, 2, 0.1, Role::kOptimizer), Tensor{},
                 scalar(DType::kF32, kLearningRate), scalar(DType::kI32, 3)};
  if (master) test.inputs[2] = random_tensor(DType::kF32, shape, 1, 1.0, Role::kOptimizer);
  test.reference = [](const Tensors& in) {
    const bool has_master = in[2].shape.rank() > 0;
    const double scale = 0.2 * std::sqrt(std::max(in[0].shape.rows(), in[0].shape.cols()));
    Outputs out(has_master ? 2 : 1);
    for (size_t i = 0; i < in[0].values.size(); ++i) {
      const double w = (has_master ? in[2] : in[0])[i] * (1 - kLearningRate * kDecay) -
                       kLearningRate * scale * in[1][i];
      for (auto& values : out) values.push_back(w);
    }
    return out;
  };
  if (stochastic) test.tolerance = 0x1p-8;
  return test;
}

TEST(MuonApply, MeetsItsReference) {
  for (const Shape& shape : {Shape{5, 7}, Shape{3, 16385}}) {
    check_op(apply_case(DType::kF32, false, false, shape));
    check_op(apply_case(DType::kBF16, false, false, shape));
    check_op(apply_case(DType::kBF16, true, false, shape));
    check_op(apply_case(DType::kBF16, false, true, shape));
  }
}

TEST(Muon, MatricesAreDealtOutByWhatTheyCost) {
  const Shape small{64, 64}, large{256, 256};
  EXPECT_THAT(muon_owners({small, large, small, large}, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(muon_owners({small, small, large}, 2), ElementsAre(1, 1, 0));
  EXPECT_THAT(muon_owners({small, large}, 1), ElementsAre(0, 0));
}

}  // namespace
}  // namespace skein

#include "skein/ops/adamw/adamw.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

struct Settings {
  DType weight = DType::kF32;
  DType moments = DType::kF32;
  bool master = false;
  bool stochastic = false;
  Shape shape = {5, 7};
  int step = 3;
};

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-5, kDecay = 0.1;
constexpr double kScale = 0.125, kLearningRate = 0.01;
constexpr int64_t kSeed = 42, kStream = 0xdeadbeef;

Outputs reference(const Tensors& in) {
  const bool has_master = in[4].shape.rank() > 0;
  const double lr = in[6][0], step = in[7][0];
  Outputs out(has_master ? 5 : 4);
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    const double g = in[1][i] * in[5][0];
    double w = (has_master ? in[4] : in[0])[i] * (1 - lr * kDecay);
    const double m = kBeta1 * in[2][i] + (1 - kBeta1) * g;
    const double v = kBeta2 * in[3][i] + (1 - kBeta2) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(kBeta2, step)) + kEpsilon;
    w -= lr / (1 - std::pow(kBeta1, step)) * m / denominator;
    out[0].push_back(w);
    out[1].push_back(0);
    out[2].push_back(m);
    out[3].push_back(v);
    if (has_master) out[4].push_back(w);
  }
  return out;
}

Tensor scalar(DType dtype, double value) {
  return make_tensor(dtype, {1}, [=](int64_t) { return value; });
}

OpCase make_case(const Settings& s) {
  OpCase test{.op = &kAdamw, .reference = reference, .tolerance = 1e-6, .phase = Phase::kUpdate};
  test.attrs = {{"beta1", kBeta1},
                {"beta2", kBeta2},
                {"epsilon", kEpsilon},
                {"weight_decay", kDecay},
                {"stochastic_rounding", s.stochastic},
                {"seed", kSeed},
                {"stream", kStream}};
  Tensor squares = random_tensor(s.moments, s.shape, 4, 0.1, Role::kOptimizer);
  for (double& value : squares.values) value = std::abs(value);
  test.inputs = {random_tensor(s.weight, s.shape, 1, 1.0, Role::kParameter),
                 random_tensor(DType::kF32, s.shape, 2, 1.0, Role::kGradient),
                 random_tensor(s.moments, s.shape, 3, 0.1, Role::kOptimizer),
                 squares,
                 Tensor{},
                 scalar(DType::kF32, kScale),
                 scalar(DType::kF32, kLearningRate),
                 scalar(DType::kI32, s.step)};
  if (s.master) {
    test.inputs[4] = random_tensor(DType::kF32, s.shape, 1, 1.0, Role::kOptimizer);
  }
  return test;
}

Outputs run_case(const OpCase& test) {
  const int num_outputs = test.inputs[4].shape.rank() > 0 ? 5 : 4;
  const BuiltCase built = build(test, num_outputs);
  const GraphRun run(built.graph, built.inputs, {});
  Outputs outputs;
  for (const ValueId id : built.graph.nodes()[0].outputs) outputs.push_back(run.read(id));
  return outputs;
}

uint32_t bits_of(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

TEST(Adamw, MeetsItsReference) {
  for (const Shape& shape : {Shape{1}, Shape{5, 7}, Shape{513}, Shape{3, 16384}, Shape{3, 16385}}) {
    check_op(make_case({.shape = shape}));
    check_op(make_case({.weight = DType::kBF16, .shape = shape}));
    check_op(make_case({.weight = DType::kBF16, .master = true, .shape = shape}));
    // Stochastic rounding is off by up to a whole bf16 step: 2^-7 of the value at most.
    OpCase noisy = make_case({.weight = DType::kBF16, .stochastic = true, .shape = shape});
    noisy.tolerance = 0x1p-8;
    check_op(noisy);
    noisy = make_case({.moments = DType::kBF16, .shape = shape});
    noisy.tolerance = 0x1p-8;
    check_op(noisy);
  }
}

TEST(Adamw, KeepsTheGradientWhereTheNextStepOverwritesIt) {
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    OpCase test = make_case({.moments = moments, .shape = {3, 701}});
    const Outputs cleared = run_case(test);
    test.attrs.set(std::string(kKeepsGradient), true);
    Outputs kept = run_case(test);
    EXPECT_EQ(kept[1], test.inputs[1].values);
    kept[1] = cleared[1];
    EXPECT_EQ(kept, cleared);
  }
}

TEST(Adamw, CorrectsTheBiasOfTheFirstSteps) {
  for (const int step : {1, 2, 10, 1000, 1000000}) check_op(make_case({.step = step}));
}

// The noise is that of base/numbers/philox.h for each element.
TEST(Adamw, RoundsTheWeightWithTheNoiseOfTheElement) {
  const Shape shape = {2, 700};
  OpCase exact = make_case({.weight = DType::kBF16, .shape = shape});
  exact.inputs[0].dtype = DType::kF32;
  const Outputs want = run_case(exact);
  const Outputs got =
      run_case(make_case({.weight = DType::kBF16, .stochastic = true, .shape = shape}));
  const Philox noise(kSeed, RandomPurpose::kStochasticRounding, kStream, 3);
  for (size_t i = 0; i < got[0].size(); ++i) {
    const uint32_t word = noise.word(i) & 0xffff;
    ASSERT_EQ(bits_of(got[0][i]), (bits_of(want[0][i]) + word) & 0xffff0000u) << i;
  }
}

TEST(Adamw, RoundsTheMomentsWithTheNoiseOfTheElement) {
  for (const Shape& shape : {Shape{700}, Shape{704}}) {
    OpCase exact = make_case({.moments = DType::kBF16, .shape = shape});
    exact.inputs[2].dtype = exact.inputs[3].dtype = DType::kF32;
    const Outputs want = run_case(exact);
    const Outputs got = run_case(make_case({.moments = DType::kBF16, .shape = shape}));
    const Philox noise(kSeed, RandomPurpose::kMomentRounding, kStream, 3);
    for (size_t i = 0; i < got[0].size(); ++i) {
      const uint32_t word = noise.word(i);
      ASSERT_EQ(bits_of(got[2][i]), (bits_of(want[2][i]) + (word & 0xffff)) & 0xffff0000u) << i;
      ASSERT_EQ(bits_of(got[3][i]), (bits_of(want[3][i]) + (word >> 16)) & 0xffff0000u) << i;
      ASSERT_EQ(got[0][i], want[0][i]) << i;  // the weight sees the moments before rounding
    }
  }
}

// The purpose of stochastic rounding: updates far below a bf16 step take effect on average.
TEST(Adamw, StochasticRoundingKeepsSmallUpdates) {
  const Shape shape = {40000};
  double moved[2];
  for (const bool stochastic : {false, true}) {
    OpCase test = make_case({.weight = DType::kBF16, .stochastic = stochastic, .shape = shape});
    for (double& w : test.inputs[0].values) w = 1.0;
    for (double& g : test.inputs[1].values) g = 1.0;
    for (double& m : test.inputs[2].values) m = kScale;
    for (double& v : test.inputs[3].values) v = kScale * kScale;
    test.inputs[6] = scalar(DType::kF32, 1e-4);
    test.inputs[7] = scalar(DType::kI32, 100000);
    double sum = 0;
    const Outputs updated = run_case(test);
    for (const double w : updated[0]) sum += 1.0 - w;
    moved[stochastic] = sum / 40000;
  }
  EXPECT_EQ(moved[0], 0.0);
  EXPECT_NEAR(moved[1], 1e-4 + 1e-5, 1e-5);
}

TEST(Adamw, RefusesWhatDoesNotFit) {
  OpCase test = make_case({});
  test.inputs[1].shape = {7, 5};
  EXPECT_THROW(build(test, 4), Error);
  test = make_case({.master = true});  // a master of an fp32 weight
  EXPECT_THROW(build(test, 5), Error);
  test = make_case({});
  test.attrs.set("beta2", 1.0);
  EXPECT_THROW(build(test, 4), Error);
}

}  // namespace
}  // namespace skein

// However a parameter is split over ranks, its update has the same bits as that of the whole.
#include "skein/ops/adamw/adamw.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

struct Precision {
  const char* name;
  DType weight, moments;
  bool master, stochastic;
};
constexpr Precision kPrecisions[] = {
    {"fp32", DType::kF32, DType::kF32, false, false},
    {"fp32, bf16 moments", DType::kF32, DType::kBF16, false, false},
    {"bf16", DType::kBF16, DType::kF32, false, false},
    {"bf16-sr", DType::kBF16, DType::kF32, false, true},
    {"bf16-sr, bf16 moments", DType::kBF16, DType::kBF16, false, true},
    {"mixed", DType::kBF16, DType::kF32, true, false},
};

// Placements over dp and tp; over cp all are Flat. `gathered`: the weight is Replicated where the
// rest is Flat.
enum class Gathered : uint8_t { kNo, kOverContext, kYes };
struct Split {
  const char* name;
  int64_t dp, tp;
  Placement over_dp, over_tp;
  Gathered gathered = Gathered::kNo;
  int64_t cp = 1;
};

const Placement kWhole = Placement::replicated(), kFlat = Placement::flat();
const Placement kRows = Placement::sharded(0), kCols = Placement::sharded(1);

const Split kWholeParameter = {"whole", 1, 1, kWhole, kWhole};

// Weight, gradient, moments, master of the whole parameter.
Tensors make_tensors(const Precision& precision, const Shape& shape) {
  Tensors tensors = {random_tensor(precision.weight, shape, 1, 1.0, Role::kParameter),
                     random_tensor(DType::kF32, shape, 2, 1.0, Role::kGradient),
                     random_tensor(precision.moments, shape, 3, 0.1, Role::kOptimizer),
                     random_tensor(precision.moments, shape, 4, 0.1, Role::kOptimizer)};
  for (double& value : tensors[3].values) value = std::abs(value);
  if (precision.master) {
    tensors.push_back(random_tensor(DType::kF32, shape, 1, 1.0, Role::kOptimizer));
  }
  return tensors;
}

class SplitRun {
 public:
  SplitRun(const Precision& precision, const Split& split, const Shape& shape)
      : mesh_(Mesh::standard(1, split.dp, split.cp, split.tp)),
        graph_(mesh_),
        whole_(make_tensors(precision, shape)) {
    graph_.set_phase(Phase::kUpdate);
    const char* names[] = {"w", "sum.w", "m", "v", "master"};
    for (size_t i = 0; i < whole_.size(); ++i) {
      TensorType type = TensorType::replicated(whole_[i].dtype, shape, mesh_);
      const Gathered gathered = i == 0 ? split.gathered : Gathered::kNo;
      type.placements[1] = gathered == Gathered::kYes ? kWhole : split.over_dp;
      type.placements[2] = gathered != Gathered::kNo || split.cp == 1 ? kWhole : kFlat;
      type.placements[3] = split.over_tp;
      inputs_.push_back(graph_.add_input(whole_[i].role, names[i], type));
    }
    const AdamwInputs inputs = {.weight = inputs_[0],
                                .gradient = inputs_[1],
                                .exp_avg = inputs_[2],
                                .exp_avg_sq = inputs_[3],
                                .master = precision.master ? inputs_[4] : kNoValue,
                                .scale = scalar("scale", DType::kF32, 0.125),
                                .learning_rate = scalar("learning_rate", DType::kF32, 0.01),
                                .step = scalar("step", DType::kI32, 3)};
    const AdamwAttrs attrs = {.beta2 = 0.95,
                              .weight_decay = 0.1,
                              .stochastic_rounding = precision.stochastic,
                              .seed = 42,
                              .stream = 0xdeadbeef};
    const AdamwOutputs out = adamw(graph_, inputs, attrs, "w");
    outputs_ = {out.weight, out.gradient, out.exp_avg, out.exp_avg_sq};
    if (precision.master) outputs_.push_back(out.master);
    verify(graph_, "the test");
  }

  // Joins the results of all ranks, and expects zeros in the padding.
  Outputs outputs() const {
    Outputs result;
    for (const Tensor& tensor : whole_) result.emplace_back(tensor.values.size(), NAN);
    for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank) {
      std::map<ValueId, Tensor> parts = scalars_;
      for (size_t i = 0; i < whole_.size(); ++i) {
        parts[inputs_[i]] = local_part(whole_[i], graph_.type(inputs_[i]), mesh_, rank);
      }
      const GraphRun run(graph_, parts, {.rank = rank});
      for (size_t i = 0; i < whole_.size(); ++i) {
        collect(run.read(outputs_[i]), graph_.type(outputs_[i]), rank, result[i]);
      }
    }
    return result;
  }

  const TensorType& new_weight() const { return graph_.type(outputs_[0]); }

 private:
  ValueId scalar(const std::string& name, DType dtype, double value) {
    const ValueId id =
        graph_.add_input(Role::kInput, name, TensorType::replicated(dtype, {1}, mesh_));
    scalars_[id] = make_tensor(dtype, {1}, [=](int64_t) { return value; });
    return id;
  }

  void collect(const std::vector<double>& part, const TensorType& type, int64_t rank,
               std::vector<double>& whole) const {
    const std::vector<int64_t> elements = local_elements(type, mesh_, rank);
    for (size_t i = 0; i < part.size(); ++i) {
      if (elements[i] >= 0) {
        whole[elements[i]] = part[i];
      } else {
        ASSERT_EQ(part[i], 0.0) << "padding " << i << " of rank " << rank;
      }
    }
  }

  Mesh mesh_;
  Graph graph_;
  Tensors whole_;
  std::vector<ValueId> inputs_, outputs_;
  std::map<ValueId, Tensor> scalars_;
};

TEST(AdamwSplit, HasTheBitsOfTheWhole) {
  const Split splits[] = {
      {"rows", 1, 3, kWhole, kRows},
      {"columns", 1, 2, kWhole, kCols},
      {"rows, rows", 2, 3, kRows, kRows},
      {"rows, columns", 3, 2, kRows, kCols},
      {"flat", 2, 1, kFlat, kWhole},
      {"flat, more ranks than granules", 11, 1, kFlat, kWhole},
      {"flat, gathered", 3, 1, kFlat, kWhole, Gathered::kYes},
      {"flat, gathered, alone", 1, 1, kFlat, kWhole, Gathered::kYes},
      {"rows, flat", 2, 3, kFlat, kRows},
      {"columns, flat", 2, 2, kFlat, kCols},
      {"rows, flat, gathered", 2, 2, kFlat, kRows, Gathered::kYes},
      {"columns, flat, gathered", 3, 4, kFlat, kCols, Gathered::kYes},
      {"flat over context", 1, 1, kWhole, kWhole, Gathered::kNo, 3},
      {"flat twice", 2, 1, kFlat, kWhole, Gathered::kNo, 3},
      {"columns, flat twice, gathered", 3, 2, kFlat, kCols, Gathered::kYes, 2},
      {"rows, flat twice, gathered once", 2, 2, kFlat, kRows, Gathered::kOverContext, 2},
  };
  for (const Shape& shape : {Shape{12, 700}, Shape{12, 720}, Shape{6, 4, 93}}) {
    for (const Precision& precision : kPrecisions) {
      // Compiling takes seconds: the precision with the most noise, of one shape.
      const bool is_chosen = &precision == &kPrecisions[4] && shape.dim(1) == 700;
      if (test_device().compiles && !is_chosen) continue;
      const Outputs want = SplitRun(precision, kWholeParameter, shape).outputs();
      for (const Split& split : splits) {
        const SplitRun run(precision, split, shape);
        EXPECT_TRUE(run.outputs() == want) << precision.name << ", " << split.name;
        EXPECT_EQ(run.new_weight().placements[1], split.over_dp);
      }
    }
  }
}

TEST(AdamwSplit, OfAVector) {
  const Shape shape = {3000};
  const Outputs want = SplitRun(kPrecisions[4], kWholeParameter, shape).outputs();
  for (const Split& split : {Split{"rows", 1, 3, kWhole, kRows}, Split{"flat", 2, 1, kFlat, kWhole},
                             Split{"rows, flat, gathered", 2, 2, kFlat, kRows, Gathered::kYes}}) {
    EXPECT_TRUE(SplitRun(kPrecisions[4], split, shape).outputs() == want) << split.name;
  }
}

// Far into a parameter of more than 2^32 elements.
TEST(AdamwSplit, CountsElementsIn64Bits) {
  const int64_t degree = int64_t{1} << 30, rank = degree - 7;
  Graph graph(Mesh::standard(1, 1, 1, degree));
  std::map<ValueId, Tensor> inputs;
  const auto input = [&](const std::string& name, DType dtype, Role role, double scale) {
    TensorType type = TensorType::replicated(dtype, {2 * degree, 35}, graph.mesh());
    type.placements[3] = kRows;
    const ValueId id = graph.add_input(role, name, type);
    inputs[id] = make_tensor(
        dtype, {2, 35}, [=](int64_t i) { return scale * (1 + i); }, role);
    return id;
  };
  const auto scalar = [&](const std::string& name, DType dtype) {
    const ValueId id =
        graph.add_input(Role::kInput, name, TensorType::replicated(dtype, {1}, graph.mesh()));
    inputs[id] = make_tensor(dtype, {1}, [](int64_t) { return 1.0; });
    return id;
  };
  graph.set_phase(Phase::kUpdate);
  const AdamwInputs in = {.weight = input("w", DType::kBF16, Role::kParameter, 0.5),
                          .gradient = input("sum.w", DType::kF32, Role::kGradient, 0.0),
                          .exp_avg = input("m", DType::kF32, Role::kOptimizer, 0.0),
                          .exp_avg_sq = input("v", DType::kF32, Role::kOptimizer, 0.0),
                          .scale = scalar("scale", DType::kF32),
                          .learning_rate = scalar("learning_rate", DType::kF32),
                          .step = scalar("step", DType::kI32)};
  const AdamwAttrs attrs = {
      .weight_decay = 0x1.123p-9, .stochastic_rounding = true, .seed = 5, .stream = 6};
  const ValueId weight = adamw(graph, in, attrs, "w").weight;
  const std::vector<double> got = GraphRun(graph, inputs, {.rank = rank}).read(weight);
  const Philox noise(5, RandomPurpose::kStochasticRounding, 6, 1);
  const auto decay = static_cast<float>(1 - 0x1.123p-9);
  for (int64_t i = 0; i < 70; ++i) {
    const float exact = static_cast<float>(inputs[in.weight][i]) * decay;
    const uint32_t word = noise.word(static_cast<uint64_t>(rank * 70 + i)) & 0xffff;
    const uint32_t want = (std::bit_cast<uint32_t>(exact) + word) & 0xffff0000u;
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(got[i])), want) << i;
  }
}

TEST(AdamwSplit, RefusesMixedPlacements) {
  const Precision& precision = kPrecisions[0];
  EXPECT_THROW(SplitRun(precision, {"gathered rows", 2, 1, kRows, kWhole, Gathered::kYes}, {4, 4}),
               Error);
  EXPECT_THROW(SplitRun(precision, {"pending", 2, 1, Placement::partial(), kWhole}, {4, 4}), Error);
}

}  // namespace
}  // namespace skein

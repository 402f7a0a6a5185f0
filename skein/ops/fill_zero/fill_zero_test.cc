#include "skein/ops/fill_zero/fill_zero.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Tensor state(DType dtype, const Shape& shape, uint32_t stream) {
  return random_tensor(dtype, shape, stream, 1.0, Role::kGradient);
}

TEST(FillZero, LeavesNothing) {
  check_op({.op = &kFillZero,
            .inputs = {state(DType::kF32, {3, 7}, 1), state(DType::kBF16, {5}, 2),
                       state(DType::kF32, {300, 257}, 3), state(DType::kF64, {24}, 4)},
            .reference =
                [](const Tensors& in) {
                  Outputs zeros;
                  for (const Tensor& x : in) zeros.emplace_back(x.values.size(), 0.0);
                  return zeros;
                },
            .phase = Phase::kUpdate});
}

TEST(FillZero, KeepsPlacementsAndClearsPadding) {
  const Mesh mesh = Mesh::standard(1, 3, 1, 1);
  Graph graph(mesh);
  TensorType type = TensorType::replicated(DType::kF32, {50, 50}, mesh);
  type.placements[1] = Placement::flat();
  const ValueId flat = graph.add_input(Role::kGradient, "flat", type);
  type.placements[1] = Placement::partial();
  const ValueId pending = graph.add_input(Role::kGradient, "pending", type);
  const std::vector<ValueId> zeros = fill_zero(graph, {flat, pending});
  EXPECT_EQ(graph.type(zeros[0]), graph.type(flat));
  EXPECT_EQ(graph.type(zeros[1]), graph.type(pending));
  const auto ones = [&](ValueId id) {
    return make_tensor(DType::kF32, graph.type(id).local_shape(mesh), [](int64_t) { return 1.0; });
  };
  const GraphRun run(graph, {{flat, ones(flat)}, {pending, ones(pending)}}, {.rank = 2});
  EXPECT_EQ(run.read(zeros[0]), std::vector<double>(1024, 0.0));
  EXPECT_EQ(run.read(zeros[1]), std::vector<double>(2500, 0.0));
}

TEST(Zeros, HaveTheTypeThatIsAsked) {
  const Mesh mesh = Mesh::standard(1, 3, 1, 1);
  Graph graph(mesh);
  TensorType type = TensorType::replicated(DType::kF32, {5, 7}, mesh);
  type.placements[1] = Placement::partial();
  const ValueId y = zeros(graph, type, "y");
  EXPECT_EQ(graph.type(y), type);
  const GraphRun run(graph, {}, {});
  EXPECT_EQ(run.read(y), std::vector<double>(35, 0.0));
}

}  // namespace
}  // namespace skein

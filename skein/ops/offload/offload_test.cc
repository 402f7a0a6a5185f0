#include "skein/ops/offload/offload.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

// Copies there and back, two at once, as the pass places them.
TEST(Offload, CopiesEveryShapeAndStaysInside) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kF64}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{17, 33}, Shape{9, 1408}, Shape{37}}) {
      Graph graph(Mesh::standard(1, 1, 1, 1));
      std::map<ValueId, Tensor> inputs;
      std::vector<ValueId> values, stashed, back;
      for (int i = 0; i < 2; ++i) {
        const TensorType type = TensorType::replicated(dtype, shape, graph.mesh());
        values.push_back(graph.add_input(Role::kInput, fmt::format("x{}", i), type));
        inputs[values[i]] =
            dtype == DType::kI32 ? random_ids(shape, 1000, i) : random_tensor(dtype, shape, i);
        stashed.push_back(stash(graph, values[i], i, fmt::format("stash{}", i)));
      }
      for (int i = 0; i < 2; ++i) end_stash(graph, values[i], i);
      for (int i = 0; i < 2; ++i) {
        back.push_back(fetch(graph, stashed[i], 2 + i, fmt::format("fetch{}", i)));
      }
      for (int i = 0; i < 2; ++i) back[i] = end_fetch(graph, back[i], 2 + i, fmt::format("y{}", i));
      verify(graph, "the test");
      const GraphRun run(graph, inputs, {.row_padding = 3});
      for (int i = 0; i < 2; ++i) EXPECT_EQ(run.read(back[i]), inputs[values[i]].values);
    }
  }
}

TEST(Offload, KeepsEveryPlacement) {
  Graph graph(Mesh::standard(1, 2, 1, 2));
  for (const Placement& first :
       {Placement::replicated(), Placement::sharded(0), Placement::partial()}) {
    for (const Placement& second : {Placement::sharded(1), Placement::partial()}) {
      TensorType type = TensorType::replicated(DType::kBF16, {8, 6}, graph.mesh());
      type.placements.at(1) = first;
      type.placements.at(3) = second;
      const std::string name = fmt::format("x{}", graph.values().size());
      const ValueId x = graph.add_input(Role::kGradient, name, type);
      const ValueId stashed = stash(graph, x, 0, name + ".stashed");
      end_stash(graph, x, 0);
      const ValueId back =
          end_fetch(graph, fetch(graph, stashed, 1, name + ".begun"), 1, name + ".back");
      EXPECT_EQ(graph.type(stashed), type);
      EXPECT_EQ(graph.type(back), type);
    }
  }
  verify(graph, "the test");
}

}  // namespace
}  // namespace skein

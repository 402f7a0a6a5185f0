#include "skein/ops/offload/offload.h"

#include "skein/ops/testing/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) { return {in[0].values}; }

TEST(Offload, CopiesEveryShapeAndStaysInside) {
  for (const OpDef* op : {&kStash, &kFetch}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kF64}) {
      for (const Shape& shape : {Shape{1, 1}, Shape{17, 33}, Shape{9, 1408}, Shape{37}}) {
        const Tensor x =
            dtype == DType::kI32 ? random_ids(shape, 1000) : random_tensor(dtype, shape);
        check_op({.op = op, .inputs = {x}, .reference = reference, .tolerance = 0});
      }
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
      const ValueId stashed = stash(graph, x, "stashed"), back = fetch(graph, stashed, "back");
      EXPECT_EQ(graph.type(stashed), type);
      EXPECT_EQ(graph.type(back), type);
    }
  }
  verify(graph, "the test");
}

}  // namespace
}  // namespace skein

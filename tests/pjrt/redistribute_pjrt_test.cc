// Redistributions between four devices of one process: every rank gets its part of the whole, and
// sums have the order of Skein's own tree.
#include <gtest/gtest.h>

#include "skein/ops/ops.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/stablehlo/lower.h"
#include "tests/ops/graph_run.h"
#include "tests/pjrt/op_kernels.h"

namespace skein::pjrt_test {
namespace {

using op_test::Tensor;

constexpr int64_t kRanks = 4;

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

Operand operand_at(int64_t offset, const Shape& shape) {
  Operand operand;
  operand.arena = Arena::kInputs;
  operand.offset_bytes = offset;
  operand.shape = shape;
  operand.row_stride = shape.cols();
  return operand;
}

class Redistribution {
 public:
  Redistribution(const Shape& shape, Placement from, Placement to)
      : graph_(Mesh::standard(1, 1, 1, kRanks)) {
    TensorType type = TensorType::replicated(DType::kF32, shape, graph_.mesh());
    type.placements[3] = from;
    x_ = graph_.add_input(Role::kActivation, "x", type);
    y_ = redistribute(graph_, x_, "tp", to);
  }

  // What each rank gets of what each rank gives.
  std::vector<std::vector<float>> run(const std::vector<std::vector<float>>& given) const {
    const Node& node = graph_.nodes().front();
    std::vector<Instruction> instructions(kRanks);
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      Instruction& one = instructions[rank];
      one.op = node.op;
      one.attrs = node.attrs;
      node.op->localize(graph_.call(node), rank, one.attrs);
      one.inputs = {operand_at(0, local(x_))};
      one.outputs = {operand_at(1 << 20, local(y_))};
    }
    stablehlo::CellMap kept;
    kept.insert(stablehlo::Cell::of(instructions[0].outputs[0], 0));
    stablehlo::ModuleRequest request{"redistribution", graph_.mesh(), {}, {}, kept};
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      request.ranks.push_back(rank);
      request.instructions.emplace_back(&instructions[rank], 1);
    }
    const stablehlo::Module module = stablehlo::write_module(request, stablehlo_rules());
    const PjrtClient& client = client_under_test();
    const auto executable = client.compile(module.text, kRanks);
    std::vector<PjrtBuffer> buffers;
    std::vector<std::vector<PJRT_Buffer*>> arguments;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      buffers.push_back(client.put(given[rank].data(), module.arguments[0].type, rank));
      arguments.push_back({buffers.back().get()});
    }
    const auto results = client.execute(*executable, arguments, 1);
    std::vector<std::vector<float>> got;
    for (const auto& one : results) {
      std::vector<float> values(static_cast<size_t>(local(y_).num_elements()));
      client.get(one[0], values.data(), std::ssize(values) * 4);
      got.push_back(std::move(values));
    }
    return got;
  }

  Shape local(ValueId id) const { return graph_.type(id).local_shape(graph_.mesh()); }
  std::vector<float> part(const Tensor& whole, ValueId id, int64_t rank) const {
    return floats(op_test::local_part(whole, graph_.type(id), graph_.mesh(), rank).values);
  }
  ValueId x() const { return x_; }
  ValueId y() const { return y_; }

 private:
  Graph graph_;
  ValueId x_, y_;
};

TEST(RedistributePjrt, GivesEveryRankItsPart) {
  const Placement whole = Placement::replicated(), flat = Placement::flat();
  const Placement rows = Placement::sharded(0), cols = Placement::sharded(1);
  const std::pair<Placement, Placement> moves[] = {{rows, whole}, {cols, whole}, {flat, whole},
                                                   {whole, rows}, {whole, cols}, {whole, flat}};
  for (const Shape& shape : {Shape{8, 12}, Shape{64, 700}}) {
    const Tensor tensor = op_test::random_tensor(DType::kF32, shape, 3);
    for (const auto& [from, to] : moves) {
      const Redistribution move(shape, from, to);
      std::vector<std::vector<float>> given, want;
      for (int64_t rank = 0; rank < kRanks; ++rank) {
        given.push_back(move.part(tensor, move.x(), rank));
        want.push_back(move.part(tensor, move.y(), rank));
      }
      EXPECT_EQ(move.run(given), want) << from.to_string() << " to " << to.to_string();
    }
  }
}

// Small and large ones travel in different ways.
TEST(RedistributePjrt, AddsInTheOrderOfTheTree) {
  for (const Shape& shape : {Shape{8, 12}, Shape{64, 700}}) {
    std::vector<std::vector<float>> terms;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      terms.push_back(
          floats(op_test::random_tensor(DType::kF32, shape, 10 + rank, 1 + 100.0 * rank).values));
    }
    Tensor sum = op_test::random_tensor(DType::kF32, shape);
    for (size_t i = 0; i < sum.values.size(); ++i) {
      sum.values[i] = (terms[0][i] + terms[1][i]) + (terms[2][i] + terms[3][i]);
    }
    for (const Placement to : {Placement::replicated(), Placement::sharded(0), Placement::flat()}) {
      const Redistribution move(shape, Placement::partial(), to);
      std::vector<std::vector<float>> want;
      for (int64_t rank = 0; rank < kRanks; ++rank) want.push_back(move.part(sum, move.y(), rank));
      EXPECT_EQ(move.run(terms), want) << to.to_string();
    }
  }
}

}  // namespace
}  // namespace skein::pjrt_test

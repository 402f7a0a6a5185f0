#include "skein/ops/sum_squares/sum_squares.h"

#include <numeric>

#include "skein/ops/checks.h"

namespace skein {
namespace {

// The chunks of x have the placement of x, which must not cut through a chunk.
Placements chunk_placements(const OpCall& call, int index) {
  const TensorType& x = call.input(index);
  const int64_t local_elements = x.local_shape(call.mesh).num_elements();
  for (size_t axis = 0; axis < x.placements.size(); ++axis) {
    const Placement& placement = x.placements[axis];
    if (placement.is_replicated() || call.mesh.axis(axis).size == 1) continue;
    call.check(placement == Placement::sharded(0) && local_elements % kSumSquaresChunk == 0,
               "{} is {} over {}: only whole chunks of {} elements on each rank are built; "
               "redistribute it first",
               call.describe(index), placement.to_string(), call.mesh.axis(axis).name,
               kSumSquaresChunk);
  }
  return x.placements;
}

std::vector<TensorType> infer(const OpCall& call) {
  std::vector<TensorType> chunks;
  for (int i = 0; i < call.num_inputs(); ++i) {
    const TensorType& x = call.input(i);
    const int64_t elements = x.shape.num_elements();
    call.check(is_compute_dtype(x.dtype) && elements > 0, "{} must be f32 or bf16, and not empty",
               call.describe(i));
    const int64_t count = (elements + kSumSquaresChunk - 1) / kSumSquaresChunk;
    chunks.push_back({DType::kF64, Shape{count}, chunk_placements(call, i)});
  }
  return chunks;
}

Cost cost(const OpCall& call) {
  double elements = 0;
  for (const TensorType* x : call.inputs) elements += x->local_shape(call.mesh).num_elements();
  return {2 * elements, input_bytes(call), output_bytes(call)};
}

std::vector<TensorType> infer_tree_sum(const OpCall& call) {
  std::vector<int> operands(call.num_inputs());
  std::iota(operands.begin(), operands.end(), 0);
  for (const int i : operands) {
    const TensorType& chunks = call.input(i);
    call.check(chunks.dtype == DType::kF64 && chunks.shape.rank() == 1, "{} must be f64[chunks]",
               call.describe(i));
  }
  return {{DType::kF64, Shape{1}, match_placements(call, operands, 1, {})[0]}};
}

Cost cost_tree_sum(const OpCall& call) {
  return {static_cast<double>(input_bytes(call) / 8), input_bytes(call), output_bytes(call)};
}

}  // namespace

const OpDef kSumSquares = {.name = "sum_squares", .infer = infer, .cost = cost};
const OpDef kTreeSum = {.name = "tree_sum", .infer = infer_tree_sum, .cost = cost_tree_sum};

std::vector<const OpDef*> sum_squares_ops() { return {&kSumSquares, &kTreeSum}; }

std::vector<ValueId> sum_squares(Graph& graph, const std::vector<ValueId>& values,
                                 const std::vector<std::string>& names) {
  return graph.add(kSumSquares, values, {}, names);
}

ValueId tree_sum(Graph& graph, const std::vector<ValueId>& chunks, const std::string& name) {
  return graph.add1(kTreeSum, chunks, {}, name);
}

}  // namespace skein

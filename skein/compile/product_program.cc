#include "skein/compile/product_program.h"

#include "skein/ops/linear/linear.h"
#include "skein/passes/memory/plan_memory.h"

namespace skein {
namespace {

Graph product_graph(DType dtype, int64_t rows, int64_t cols, int64_t terms) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  const auto matrix = [&](int64_t of_rows) {
    return TensorType::replicated(dtype, Shape{of_rows, terms}, graph.mesh());
  };
  const ValueId x = graph.add_input(Role::kInput, "x", matrix(rows));
  const ValueId w = graph.add_input(Role::kParameter, "w", matrix(cols));
  graph.mark_output(linear(graph, x, {w}, {}, {"y"}, dtype != DType::kF32).front());
  return graph;
}

}  // namespace

ProductProgram::ProductProgram(Device& device, DType dtype, int64_t rows, int64_t cols,
                               int64_t terms)
    : graph_(product_graph(dtype, rows, cols, terms)),
      programs_(plan_memory({{.graph = &graph_}}, device.kernels())),
      executor_(device, programs_) {}

}  // namespace skein

#include "skein/ops/fill_zero/fill_zero.h"

#include "skein/ops/checks.h"
#include "skein/ops/type_attrs.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  std::vector<TensorType> types;
  for (int i = 0; i < call.num_inputs(); ++i) types.push_back(call.input(i));
  return types;
}

Cost cost(const OpCall& call) { return {0, 0, output_bytes(call)}; }

Layout layout(const OpCall& call) {
  Layout layout;
  for (int i = 0; i < call.num_inputs(); ++i) layout.aliases.push_back({.output = i, .input = i});
  return layout;
}

std::vector<TensorType> infer_zeros(const OpCall& call) { return {type_of_attrs(call)}; }

}  // namespace

const OpDef kFillZero = {.name = "fill_zero", .infer = infer, .cost = cost, .layout = layout};

const OpDef kZeros = {.name = "zeros", .infer = infer_zeros, .cost = cost};

std::vector<const OpDef*> fill_zero_ops() { return {&kFillZero, &kZeros}; }

ValueId zeros(Graph& graph, const TensorType& type, const std::string& name) {
  return graph.add1(kZeros, {}, type_attrs(type), name);
}

std::vector<ValueId> fill_zero(Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId id : values) names.push_back(graph.value(id).name);
  return graph.add(kFillZero, values, {}, names);
}

}  // namespace skein

#include "skein/ops/fold/fold.h"

#include "skein/ops/checks.h"

namespace skein {
namespace {

bool is_merge(const OpCall& call) { return call.attrs.text("mode") == "merge"; }

std::vector<TensorType> infer(const OpCall& call) {
  const std::string& mode = call.attrs.text("mode");
  call.check(mode == "push" || mode == "merge", "mode is '{}': expected push or merge", mode);
  call.check(call.num_inputs() % 2 == 0, "{} has no gradient",
             call.describe(call.num_inputs() - 1));
  std::vector<TensorType> types;
  for (int i = 0; i < call.num_inputs(); ++i) {
    call.check(call.input(i).dtype == DType::kF32, "{} must be f32", call.describe(i));
    types.push_back(call.input(i));
  }
  for (int i = 0; i < call.num_inputs(); i += 2) {
    call.check(types[i] == types[i + 1], "{} does not match {}", call.describe(i),
               call.describe(i + 1));
  }
  return types;
}

Cost cost(const OpCall& call) {
  const int64_t half = input_bytes(call) / 2;
  if (is_merge(call)) return {static_cast<double>(half) / sizeof(float), 2 * half, half};
  return {0, half, 2 * half};
}

Layout layout(const OpCall& call) {
  Layout layout;
  for (int i = 0; i < call.num_inputs(); ++i) layout.aliases.push_back({.output = i, .input = i});
  return layout;
}

}  // namespace

const OpDef kFold = {.name = "fold", .infer = infer, .cost = cost, .layout = layout};

std::vector<const OpDef*> fold_ops() { return {&kFold}; }

std::vector<FoldPair> fold(Graph& graph, const std::vector<FoldPair>& pairs, FoldMode mode) {
  std::vector<ValueId> inputs;
  std::vector<std::string> names;
  for (const FoldPair& pair : pairs) {
    for (const ValueId id : {pair.level, pair.gradient}) {
      inputs.push_back(id);
      names.push_back(graph.value(id).name);
    }
  }
  const std::string text = mode == FoldMode::kMerge ? "merge" : "push";
  const std::vector<ValueId> outputs = graph.add(kFold, inputs, {{"mode", text}}, names);
  std::vector<FoldPair> result;
  for (size_t i = 0; i < outputs.size(); i += 2) result.push_back({outputs[i], outputs[i + 1]});
  return result;
}

}  // namespace skein

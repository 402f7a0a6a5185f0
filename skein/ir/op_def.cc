#include "skein/ir/op_def.h"

#include <sstream>

namespace skein {

const TensorType& OpCall::input(int index) const {
  if (!has_input(index)) fail("input {} is missing", index);
  return *inputs[index];
}

std::string OperandText::to_string() const {
  if (!call.has_input(index)) return "(absent)";
  const auto& names = call.input_names;
  const std::string_view name =
      index < static_cast<int>(names.size()) ? names[index] : std::string_view("input");
  return fmt::format("{} {}", name, call.inputs[index]->to_string(call.mesh));
}

void OpCall::fail_text(const std::string& message) const {
  throw IllegalCall(scope.empty() ? fmt::format("[{}] {}", op, message)
                                  : fmt::format("[{}] {} ({})", op, message, scope));
}

const OpDef* find_op(const OpTable& table, std::string_view name) {
  for (const OpDef* op : table) {
    if (op->name == name) return op;
  }
  return nullptr;
}

namespace {

struct PlacementRule {
  std::vector<Placement> inputs;
  std::vector<Placement> outputs;
};

PlacementRule parse_rule(std::string_view text) {
  PlacementRule rule;
  std::istringstream words{std::string(text)};
  std::string word;
  bool after_arrow = false;
  while (words >> word) {
    if (word == "->") {
      after_arrow = true;
    } else {
      (after_arrow ? rule.outputs : rule.inputs).push_back(Placement::parse(word));
    }
  }
  return rule;
}

}  // namespace

std::vector<Placements> match_placements(const OpCall& call, const std::vector<int>& operands,
                                         int num_outputs, std::span<const std::string_view> rules) {
  std::vector<int> present;
  for (const int operand : operands) {
    if (call.has_input(operand)) present.push_back(operand);
  }
  std::vector<Placements> result(num_outputs,
                                 Placements(call.mesh.num_axes(), Placement::replicated()));
  for (int axis = 0; axis < call.mesh.num_axes(); ++axis) {
    std::vector<Placement> found;
    bool all_replicated = true;
    for (const int operand : present) {
      found.push_back(call.input(operand).placements.at(axis));
      all_replicated = all_replicated && found.back().is_replicated();
    }
    if (all_replicated) continue;
    bool matched = false;
    for (const std::string_view text : rules) {
      const PlacementRule rule = parse_rule(text);
      if (rule.inputs != found || static_cast<int>(rule.outputs.size()) != num_outputs) continue;
      for (int output = 0; output < num_outputs; ++output) {
        result[output][axis] = rule.outputs[output];
      }
      matched = true;
      break;
    }
    if (!matched) {
      std::string values;
      for (const int operand : present)
        values += (values.empty() ? "" : ", ") + call.describe(operand).to_string();
      call.fail("no placement rule for {} on axis {}", values, call.mesh.axis(axis).name);
    }
  }
  return result;
}

}  // namespace skein

#include "skein/ir/graph.h"

#include <algorithm>
#include <charconv>

namespace skein {

namespace {

// What a name may hold, so that the text form reads it back (graph_text.h).
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.'/";

void check_name(const std::string& name) {
  const bool good = !name.empty() && name.find_first_not_of(kNameCharacters) == std::string::npos;
  if (!good)
    fail(ErrorCode::kInternal, "'{}' cannot name a value: the text form could not read it", name);
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kActivation:
      return "activation";
    case Role::kParameter:
      return "parameter";
    case Role::kGradient:
      return "gradient";
    case Role::kOptimizer:
      return "optimizer";
    case Role::kInput:
      return "input";
    case Role::kCache:
      return "cache";
    case Role::kRounded:
      return "rounded";
  }
  return "?";
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

ValueId Graph::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? kNoValue : found->second;
}

ValueId Graph::add_input(Role role, const std::string& name, TensorType type) {
  check_name(name);
  if (by_name_.contains(name)) fail(ErrorCode::kInternal, "graph input '{}' exists already", name);
  if (static_cast<int>(type.placements.size()) != mesh_.num_axes()) {
    fail(ErrorCode::kInternal, "graph input '{}' has {} placements: {} has {} axes", name,
         type.placements.size(), mesh_.to_string(), mesh_.num_axes());
  }
  type.local_shape(mesh_);  // throws where the mesh cannot split it
  const ValueId id = static_cast<ValueId>(values_.size());
  values_.push_back({name, std::move(type), role, -1, false});
  by_name_[name] = id;
  return id;
}

Scope Scope::named(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (name == behind_layers().name) return behind_layers();
  Scope scope{std::string(name), kBefore};
  if (name.starts_with(kLayers)) {
    const std::string_view digits = name.substr(kLayers.size());
    int layer = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    if (end.ec == std::errc() && of_layer(layer).name == name) scope.layer = layer;
  }
  return scope;
}

std::string Graph::unique_name(const std::string& wanted) {
  check_name(wanted);
  if (!by_name_.contains(wanted)) return wanted;
  for (int& suffix = next_suffix_.try_emplace(wanted, 2).first->second;; ++suffix) {
    std::string name = fmt::format("{}'{}", wanted, suffix);
    if (!by_name_.contains(name)) return name;
  }
}

std::vector<ValueId> Graph::add(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                                const std::vector<std::string>& names) {
  Node node{&op, std::move(attrs), std::move(inputs), {}, scope_, phase_, chunk_, last_only_};
  std::vector<TensorType> types = op.infer(call(node));
  if (types.size() != names.size()) {
    fail(ErrorCode::kInternal, "[{}] has {} outputs, {} names were given", op.name, types.size(),
         names.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId id = static_cast<ValueId>(values_.size());
    const std::string name = unique_name(names[i]);
    values_.push_back(
        {name, std::move(types[i]), Role::kActivation, static_cast<int>(nodes_.size()), false});
    by_name_[name] = id;
    node.outputs.push_back(id);
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::replace_nodes(std::vector<Node> nodes) {
  for (Value& value : values_) value.producer = -1;
  nodes_ = std::move(nodes);
  for (size_t index = 0; index < nodes_.size(); ++index) {
    for (const ValueId output : nodes_[index].outputs) {
      values_[output].producer = static_cast<int>(index);
    }
  }
}

void Graph::rename(ValueId id, const std::string& name) {
  by_name_.erase(values_.at(id).name);
  values_[id].name = unique_name(name);
  by_name_[values_[id].name] = id;
}

void Graph::replace_output(ValueId before, ValueId now) {
  std::replace(outputs_.begin(), outputs_.end(), before, now);
}

OpCall Graph::call(const Node& node) const {
  OpCall call{node.op->name, node.scope.name, mesh_, node.attrs, {}, {}, {}};
  for (const ValueId input : node.inputs) {
    call.inputs.push_back(input == kNoValue ? nullptr : &value(input).type);
    call.input_names.push_back(input == kNoValue ? std::string_view("_") : value(input).name);
  }
  for (const ValueId output : node.outputs) call.outputs.push_back(&value(output).type);
  return call;
}

}  // namespace skein

#include "skein/passes/parallel/shard.h"

#include <algorithm>
#include <map>

#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

class Sharder {
 public:
  Sharder(const Graph& plain, const ShardPlan& plan)
      : plain_(plain), plan_(plan), placed_(plain.mesh()), map_(plain.values().size(), kNoValue) {}

  Graph run() {
    add_inputs();
    for (const Node& node : plain_.nodes()) add_node(node);
    for (const ValueId id : plain_.outputs()) placed_.mark_output(map_[id]);
    return std::move(placed_);
  }

 private:
  const Mesh& mesh() const { return plain_.mesh(); }

  // An axis of size 1 splits nothing: Replicated.
  std::optional<Placements> wanted_placements(const Value& value) const {
    auto wanted = plan_.place(value);
    for (int axis = 0; wanted && axis < mesh().num_axes(); ++axis) {
      if (mesh().axis(axis).size == 1) (*wanted)[axis] = Placement::replicated();
    }
    return wanted;
  }

  void add_inputs() {
    for (size_t id = 0; id < plain_.values().size(); ++id) {
      const Value& value = plain_.values()[id];
      if (value.producer >= 0) continue;
      TensorType type = value.type;
      if (const auto wanted = wanted_placements(value)) type.placements = *wanted;
      try {
        map_[id] = placed_.add_input(value.role, value.name, type);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("'{}' {}", value.name, error.what()));
      }
    }
  }

  void add_node(const Node& node) {
    placed_.set_scope(node.scope);
    placed_.set_phase(node.phase);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? id : map_[id]);
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(plain_.value(id).name);
    std::vector<ValueId> outputs;
    if (node.op->expand != nullptr) outputs = node.op->expand(placed_, node, inputs, names);
    if (outputs.empty()) {
      make_legal(node, inputs);
      outputs = placed_.add(*node.op, inputs, node.attrs, names);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value& plain = plain_.value(node.outputs[i]);
      ValueId id = outputs[i];
      if (plain.transient) placed_.value(id).transient = true;
      if (const auto wanted = wanted_placements(plain)) id = redistribute_all(placed_, id, *wanted);
      map_[node.outputs[i]] = id;
    }
  }

  bool is_activation(ValueId id) const {
    return id != kNoValue && placed_.value(id).role == Role::kActivation;
  }

  void make_legal(const Node& node, std::vector<ValueId>& inputs) {
    std::vector<Placements> wanted;
    for (const ValueId id : inputs) {
      wanted.push_back(id == kNoValue ? Placements{} : placed_.type(id).placements);
    }
    for (int axis = 0; axis < mesh().num_axes(); ++axis) choose(node, inputs, axis, wanted);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_activation(inputs[i])) inputs[i] = moved(inputs[i], wanted[i]);
    }
    placed_.set_scope(node.scope);
  }

  // The type of `id` as if `axis` were the only one.
  TensorType alone(ValueId id, int axis) const {
    TensorType type = placed_.type(id);
    for (int other = 0; other < mesh().num_axes(); ++other) {
      if (other != axis) type.placements[other] = Placement::replicated();
    }
    return type;
  }

  bool accepts(const Node& node, const std::vector<TensorType>& types,
               const std::vector<ValueId>& inputs) const {
    OpCall call{node.op->name, node.scope.name, mesh(), node.attrs, {}, {}, {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      call.inputs.push_back(inputs[i] == kNoValue ? nullptr : &types[i]);
    }
    try {
      node.op->infer(call);
      return true;
    } catch (const IllegalCall&) {
      return false;
    }
  }

  struct Placing {
    std::vector<TensorType> types;
    double bytes = 0;
  };

  // Bytes that a rank sends to move a value over one axis.
  double wire_bytes(const TensorType& from, Placement to, int axis) const {
    const double ranks = static_cast<double>(mesh().axis(axis).size);
    const double whole =
        static_cast<double>(from.shape.num_elements() * size_of(from.dtype)) * (ranks - 1) / ranks;
    const Placement& at = from.placements[axis];
    if (at == to || at.is_replicated()) return 0;
    return at.is_partial() && to.is_replicated() ? 2 * whole : whole;
  }

  std::vector<Placing> candidates(const std::vector<ValueId>& inputs, int axis) const {
    std::vector<Placing> all(1);
    for (const ValueId id : inputs) {
      std::vector<Placing> next;
      for (const Placing& so_far : all) {
        const TensorType type = id == kNoValue ? TensorType{} : alone(id, axis);
        next.push_back(so_far);
        next.back().types.push_back(type);
        if (!is_activation(id)) continue;
        for (const Placement to : {Placement::replicated(), Placement::sharded(0)}) {
          if (to.is_sharded() && plan_.whole_rows.contains(mesh().axis(axis).name)) continue;
          if (!can_redistribute(type, mesh(), axis, to)) continue;
          Placing candidate = so_far;
          candidate.types.push_back(type);
          candidate.types.back().placements[axis] = to;
          candidate.bytes += wire_bytes(type, to, axis);
          next.push_back(std::move(candidate));
        }
      }
      all = std::move(next);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Placing& a, const Placing& b) { return a.bytes < b.bytes; });
    return all;
  }

  void choose(const Node& node, const std::vector<ValueId>& inputs, int axis,
              std::vector<Placements>& wanted) const {
    std::vector<TensorType> types;
    for (const ValueId id : inputs) {
      types.push_back(id == kNoValue ? TensorType{} : alone(id, axis));
    }
    if (mesh().axis(axis).size == 1 || accepts(node, types, inputs)) return;
    for (const Placing& candidate : candidates(inputs, axis)) {
      if (!accepts(node, candidate.types, inputs)) continue;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != kNoValue) wanted[i][axis] = candidate.types[i].placements[axis];
      }
      return;
    }
    // No candidate is legal: the op itself reports why when the node is added.
  }

  // Redistributes in the scope that made the value: a layer that is recomputed must not reduce its
  // input again, since an all-reduce overwrites it.
  ValueId moved(ValueId id, const Placements& wanted) {
    if (placed_.type(id).placements == wanted) return id;
    std::string key;
    for (const Placement placement : wanted) key += placement.to_string() + " ";
    const auto [entry, fresh] = moved_.try_emplace({id, key}, kNoValue);
    if (fresh) {
      const int producer = placed_.value(id).producer;
      if (producer >= 0) placed_.set_scope(placed_.nodes()[producer].scope);
      entry->second = redistribute_all(placed_, id, wanted);
    }
    return entry->second;
  }

  const Graph& plain_;
  const ShardPlan& plan_;
  Graph placed_;
  std::vector<ValueId> map_;  // of plain values
  std::map<std::pair<ValueId, std::string>, ValueId> moved_;
};

}  // namespace

Graph shard(const Graph& graph, const ShardPlan& plan) {
  Graph placed = Sharder(graph, plan).run();
  return placed;
}

}  // namespace skein

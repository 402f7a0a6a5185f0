// The graph of a training step: values with types, nodes in execution order.
//
// Every value is written once, by the node that produces it, or is a graph input. Memory that is
// updated in place (an accumulated gradient, a weight) is a chain of values that share storage; the
// op's layout says so, and `verify` checks that no one reads a value that has been overwritten.
#pragma once

#include <climits>
#include <compare>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skein/ir/op_def.h"

namespace skein {

using ValueId = int;
inline constexpr ValueId kNoValue = -1;

// The kind of a graph input, which decides its arena. Values that nodes produce are activations, or
// share the storage of such an input.
// kRounded: what is made of weights at the beginning of a step; not saved. kCache: what a forward
// pass leaves for later ones.
enum class Role { kActivation, kParameter, kGradient, kOptimizer, kInput, kRounded, kCache };
std::string_view role_name(Role role);

enum class Phase { kForward, kBackward, kUpdate };
std::string_view phase_name(Phase phase);

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  Role role = Role::kActivation;
  int producer = -1;  // node index; -1: a graph input
  // Too large to keep (the logits of a token block): its consumers run right after it.
  bool transient = false;
};

// Where in the model a node belongs. The nodes of one scope are recomputed together, lie on one
// stage of a pipeline, and share gathered weights.
struct Scope {
  static constexpr int kBefore = -1, kBehind = INT_MAX;

  std::string name;  // for people and for the text form
  int layer = kBefore;

  static Scope before_layers() { return {"embed", kBefore}; }
  static Scope of_layer(int layer) { return {"layers." + std::to_string(layer), layer}; }
  static Scope behind_layers() { return {"head", kBehind}; }
  // The scope of that name; a name other than those above gives a scope outside the model.
  static Scope named(std::string_view name);

  bool is_layer() const { return layer != kBefore && layer != kBehind; }
  auto operator<=>(const Scope&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;  // kNoValue: absent
  std::vector<ValueId> outputs;
  Scope scope;
  Phase phase = Phase::kForward;
  int chunk = 0;           // the pipeline's model chunk, which has programs of its own
  bool last_only = false;  // runs only with the last micro-batch of a step
};

class Graph {
 public:
  explicit Graph(Mesh mesh) : mesh_(std::move(mesh)) {}

  const Mesh& mesh() const { return mesh_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const Value& value(ValueId id) const { return values_.at(id); }
  Value& value(ValueId id) { return values_.at(id); }
  const TensorType& type(ValueId id) const { return values_.at(id).type; }
  ValueId find(std::string_view name) const;  // kNoValue if there is none

  // Adds a graph input. Throws Error{kInternal} if the name is taken.
  ValueId add_input(Role role, const std::string& name, TensorType type);
  // Appends a node in the current scope and phase, and infers its output types. `names` has one
  // name per output; a name that is taken gets a suffix.
  std::vector<ValueId> add(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                           const std::vector<std::string>& names);
  // The same for an op with one output.
  ValueId add1(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, const std::string& name) {
    return add(op, std::move(inputs), std::move(attrs), {name}).front();
  }

  void set_scope(Scope scope) { scope_ = std::move(scope); }
  void set_phase(Phase phase) { phase_ = phase; }
  void set_chunk(int chunk) { chunk_ = chunk; }
  void set_last_only(bool last_only) { last_only_ = last_only; }

  // Values that outlive the step program (the loss, the norm): never removed or overwritten.
  void mark_output(ValueId id) { outputs_.push_back(id); }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  void rename(ValueId id, const std::string& name);  // a taken name gets a suffix
  // `now` outlives the program instead of `before`.
  void replace_output(ValueId before, ValueId now);

  // Replaces the nodes by the same ones in another order, or by some of them; producers are
  // renumbered.
  void replace_nodes(std::vector<Node> nodes);

  // The node as the rules of its op see it.
  OpCall call(const Node& node) const;

 private:
  std::string unique_name(const std::string& wanted);

  Mesh mesh_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> outputs_;
  std::unordered_map<std::string, ValueId> by_name_;
  std::unordered_map<std::string, int> next_suffix_;  // of a name that was wanted again
  Scope scope_;
  Phase phase_ = Phase::kForward;
  int chunk_ = 0;
  bool last_only_ = false;
};

}  // namespace skein

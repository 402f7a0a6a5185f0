#include "skein/ir/verify.h"

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "skein/ir/shared_rows.h"

namespace skein {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass, Transients transients)
      : graph_(graph), pass_(pass), transients_(transients), shared_(graph) {
    defined_.resize(graph.values().size(), false);
    overwritten_by_.resize(graph.values().size(), -1);
  }

  void run() {
    check_names();
    define_inputs();
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      index_ = static_cast<int>(index);
      check_node(graph_.nodes()[index]);
    }
    for (const ValueId output : graph_.outputs()) {
      if (!defined_.at(output))
        reject("graph output '{}' is never defined", graph_.value(output).name);
      if (overwritten_by_[output] >= 0) {
        reject("graph output '{}' is overwritten by node {}", graph_.value(output).name,
               overwritten_by_[output]);
      }
    }
    for (const auto& [end, begun] : under_way_) {
      index_ = begun;
      reject("its work on channel {} is ended by no [{}]", end.second, end.first);
    }
  }

 private:
  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string message = fmt::format(format, std::forward<Args>(args)...);
    if (index_ < 0) fail(ErrorCode::kInternal, "after {}: {}", pass_, message);
    fail(ErrorCode::kInternal, "after {}: node {} [{}]: {}", pass_, index_,
         graph_.nodes()[index_].op->name, message);
  }

  void check_names() const {
    std::unordered_set<std::string_view> names;
    for (const Value& value : graph_.values()) {
      if (!names.insert(value.name).second) reject("two values are named '{}'", value.name);
    }
  }

  void define_inputs() {
    std::vector<bool> produced(defined_.size(), false);
    for (const Node& node : graph_.nodes()) {
      if (!node.op->ended_by.empty()) ends_.insert(node.op->ended_by);
      for (const ValueId output : node.outputs) {
        if (produced.at(output)) reject("'{}' is produced twice", graph_.value(output).name);
        produced[output] = true;
      }
    }
    for (size_t id = 0; id < defined_.size(); ++id) {
      defined_[id] = !produced[id] && graph_.values()[id].role != Role::kActivation;
    }
  }

  void check_node(const Node& node) {
    if (node.phase < phase_) {
      reject("phase {} after {}", phase_name(node.phase), phase_name(phase_));
    }
    phase_ = node.phase;
    end_work(node);
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) check_use(node, input);
    }
    const std::vector<TensorType> types = node.op->infer(graph_.call(node));
    if (types.size() != node.outputs.size()) {
      reject("{} outputs, the op infers {}", node.outputs.size(), types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Value& output = graph_.value(node.outputs[i]);
      if (!(output.type == types[i])) {
        reject("'{}' is {}, the op infers {}", output.name, output.type.to_string(graph_.mesh()),
               types[i].to_string(graph_.mesh()));
      }
      defined_[node.outputs[i]] = true;
    }
    Layout layout;
    if (node.op->layout != nullptr) layout = node.op->layout(graph_.call(node));
    shared_.add(node, layout);
    for (const Alias& alias : layout.aliases) {
      if (alias.in_place && node.inputs.at(alias.input) != kNoValue) check_overwrite(node, alias);
    }
    begin_work(node);
  }

  void check_use(const Node& node, ValueId id) {
    const Value& value = graph_.value(id);
    if (!defined_.at(id)) reject("'{}' is used before it is defined", value.name);
    if (overwritten_by_[id] >= 0) {
      reject("'{}' is read after node {} [{}] overwrote it", value.name, overwritten_by_[id],
             graph_.nodes()[overwritten_by_[id]].op->name);
    }
    if (transients_ == Transients::kInPlace && value.transient && value.producer >= 0 &&
        graph_.nodes()[value.producer].phase != node.phase) {
      reject("transient '{}' outlives its phase", value.name);
    }
    check_not_in(being_written_, id, "reads");
  }

  // Overwriting an input destroys every value with rows in the same memory: the input, its views,
  // and what it is a view of.
  void check_overwrite(const Node& node, const Alias& alias) {
    const ValueId output = node.outputs.at(alias.output);
    check_not_in(being_written_, output, "overwrites");
    check_not_in(being_read_, output, "overwrites");
    for (const ValueId gone : shared_.sharing(output)) {
      if (gone == output) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == gone && static_cast<int>(i) != alias.input) {
          reject("reads '{}', whose memory it overwrites as that of '{}'", graph_.value(gone).name,
                 graph_.value(node.inputs[alias.input]).name);
        }
      }
      check_may_change(node, gone);
      overwritten_by_[gone] = index_;
    }
  }

  void check_may_change(const Node& node, ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.role == Role::kInput && value.type.dtype == DType::kI32) {
      reject("overwrites the input '{}'", value.name);
    }
    const bool is_state = value.role == Role::kParameter || value.role == Role::kOptimizer;
    if (is_state && node.phase != Phase::kUpdate) {
      reject("overwrites the {} '{}' before the update", role_name(value.role), value.name);
    }
  }

  // ---- asynchronous work, between the op that starts it and the op that ends it (OpDef::ended_by)

  using WorkEnd = std::pair<std::string_view, int64_t>;  // op, channel
  using InUse = std::unordered_map<ValueId, int>;        // value -> index of the node that uses it

  void begin_work(const Node& node) {
    if (node.op->ended_by.empty()) return;
    const WorkEnd end{node.op->ended_by, node.attrs.integer("channel")};
    if (!under_way_.emplace(end, index_).second) {
      reject("channel {} is under way already", end.second);
    }
    for (const ValueId id : node.outputs) being_written_[id] = index_;
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) being_read_[id] = index_;
    }
  }

  void end_work(const Node& node) {
    if (!node.attrs.has("channel")) return;
    const auto found = under_way_.find({node.op->name, node.attrs.integer("channel")});
    if (found == under_way_.end()) {
      if (!ends_.contains(node.op->name)) return;
      reject("ends work on channel {} that nobody began", node.attrs.integer("channel"));
    }
    const int begun = found->second;
    under_way_.erase(found);
    for (InUse* in_use : {&being_written_, &being_read_}) {
      std::erase_if(*in_use, [&](const auto& use) { return use.second == begun; });
    }
  }

  void check_not_in(const InUse& in_use, ValueId id, std::string_view what) {
    if (in_use.empty()) return;
    for (const ValueId other : shared_.sharing(id)) {
      const auto found = in_use.find(other);
      if (found == in_use.end()) continue;
      reject("{} '{}' while node {} [{}] is still at work on '{}'", what, graph_.value(id).name,
             found->second, graph_.nodes()[found->second].op->name, graph_.value(other).name);
    }
  }

  const Graph& graph_;
  std::string_view pass_;
  Transients transients_;
  std::vector<bool> defined_;
  std::vector<int> overwritten_by_;
  SharedRows shared_;
  std::set<std::string_view> ends_;   // ops that end asynchronous work
  std::map<WorkEnd, int> under_way_;  // end -> index of the node that began the work
  InUse being_written_, being_read_;
  Phase phase_ = Phase::kForward;
  int index_ = -1;
};

}  // namespace

void verify(const Graph& graph, std::string_view after_pass, Transients transients) {
  Verifier(graph, after_pass, transients).run();
}

}  // namespace skein

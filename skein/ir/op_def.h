// What an op is: a table of rules. Everything about one op lives in its folder skein/ops/<op>/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/ir/attrs.h"
#include "skein/tensor/tensor_type.h"

namespace skein {

class BackwardContext;
class Graph;
struct Collective;  // skein/comm/communicator.h
struct KernelCall;
struct Node;

// Thrown by an op's rules for an illegal combination of shapes, dtypes or placements.
class IllegalCall : public Error {
 public:
  explicit IllegalCall(const std::string& message) : Error(ErrorCode::kInvalid, message) {}
};

struct OpCall;

// "x f32[4096, 512]" in a message. The text is made when a message is: rules check every call of a
// graph, and hardly ever fail.
struct OperandText {
  const OpCall& call;
  int index;
  std::string to_string() const;
};

// One use of an op, as its rules see it. `outputs` is empty during inference.
struct OpCall {
  std::string_view op;
  std::string_view scope;
  const Mesh& mesh;
  const Attrs& attrs;
  std::vector<const TensorType*> inputs;  // null: an absent optional input
  std::vector<std::string_view> input_names;
  std::vector<const TensorType*> outputs;

  int num_inputs() const { return static_cast<int>(inputs.size()); }
  bool has_input(int index) const { return index < num_inputs() && inputs[index] != nullptr; }
  // A present input; fails where it is absent.
  const TensorType& input(int index) const;
  const TensorType& output(int index) const { return *outputs.at(index); }
  OperandText describe(int index) const { return {*this, index}; }

  // Throws IllegalCall, "[op] message (scope)".
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_text(const std::string& message) const;
  // Fails unless `condition`, naming what was expected.
  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) fail_text(fmt::format(format, std::forward<Args>(args)...));
  }
};

// The work of one execution on one rank.
struct Cost {
  double flops = 0;  // multiply and add count as two
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

// `output` shares the memory of `input`, starting `row_offset` local rows into it.
//   in_place: the op overwrites the input, which nobody may read afterwards
//   view:     the op writes nothing; both stay readable
struct Alias {
  int output = 0;
  int input = 0;
  bool in_place = true;
  int64_t row_offset = 0;
};

// Operands that should lie side by side in one matrix along `dim`, so that one kernel call reads or
// writes them as one. `required`: the kernel cannot work otherwise (concat).
struct Bundle {
  bool outputs = false;  // of the node's outputs; otherwise of its inputs
  std::vector<int> operands;
  int dim = 0;
  bool required = false;
};

struct Layout {
  std::vector<Alias> aliases;
  std::vector<Bundle> bundles;
};

// Running the same op over `inputs` (values that are kept anyway) rebuilds `outputs` bit for bit.
// Only for ops that cost little compared with the memory that this saves.
struct Rematerialization {
  std::vector<int> inputs;   // value ids; -1: absent
  std::vector<int> outputs;  // indices of the node's outputs that are rebuilt
};

struct OpDef {
  std::string_view name;
  // Infers output types, with placements, from input types; throws through OpCall::fail.
  std::vector<TensorType> (*infer)(const OpCall&) = nullptr;
  Cost (*cost)(const OpCall&) = nullptr;
  // Appends the nodes of the derivative; null: not differentiable (an error if a gradient arrives).
  void (*backward)(BackwardContext&) = nullptr;
  Layout (*layout)(const OpCall&) = nullptr;  // null: nothing shared
  // The derivative only moves or adds gradients, so a sum that is pending may stay pending through
  // it.
  bool passes_pending = false;
  // Sets attrs that say where this rank's parts lie in the whole (its rows of a split table, its
  // range of a Flat weight); called when memory is planned. Null: the kernel does not need them.
  void (*localize)(const OpCall&, int64_t rank, Attrs&) = nullptr;
  // Replaces a node that cannot run on its inputs as they are placed: appends nodes over `inputs`
  // (the values that stand for the node's own inputs) and returns the values that replace its
  // outputs, named `names`. Null, or an empty result: the node is appended unchanged.
  std::vector<int> (*expand)(Graph&, const Node&, const std::vector<int>& inputs,
                             const std::vector<std::string>& names) = nullptr;
  // The op that completes the asynchronous work that this op starts, on the same attr `channel`.
  // Until then nobody may read or overwrite the outputs, nor overwrite the inputs. Empty: the work
  // is complete when the next op runs.
  std::string_view ended_by = {};
  // The collective that the op runs on the communicator of its attr `axis`, bound to memory;
  // kBarrier where nothing is sent. Null: the op does not communicate, or only receives.
  Collective (*collective)(const KernelCall&) = nullptr;
  // The op waits for other ranks and has no work of its own, but for a copy of what has arrived.
  bool only_waits = false;
  // Its outputs lie in host memory.
  bool outputs_on_host = false;
  // A matrix product that may run on 8-bit floats: has the attr `fp8`.
  bool can_use_fp8 = false;
  // How many of its first outputs the op looks through with the attr `largest` (ops/largest.h).
  int largest_outputs = 0;
  // How selective recomputation rebuilds its outputs in backward; null: its outputs are kept.
  Rematerialization (*rematerialize)(const Node&) = nullptr;
};

// All ops that a graph may name: a plain list, passed to whoever parses text.
using OpTable = std::vector<const OpDef*>;

// Returns null if the table has no such op.
const OpDef* find_op(const OpTable& table, std::string_view name);

// Infers placements, one mesh axis at a time. `rules` lists the legal combinations for one axis as
// "S0 R -> S0"; the inputs are the present ones among `operands`, in order. Returns the placements
// of each output; fails, naming the values, where no rule fits an axis. "R ... -> R" need not be
// listed: Replicated inputs always give Replicated outputs.
std::vector<Placements> match_placements(const OpCall& call, const std::vector<int>& operands,
                                         int num_outputs, std::span<const std::string_view> rules);

}  // namespace skein

template <>
struct fmt::formatter<skein::OperandText> : fmt::formatter<std::string> {
  auto format(const skein::OperandText& text, format_context& context) const {
    return fmt::formatter<std::string>::format(text.to_string(), context);
  }
};

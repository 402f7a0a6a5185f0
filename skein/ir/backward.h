// What an op's derivative rule may see and do. Implemented by the differentiate pass.
#pragma once

#include <string>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

inline constexpr ValueId kUnitGrad = -2;  // the derivative of the loss by itself

// Gradients are sums over the tokens of the step; the update divides by their number.
//
// A parameter's gradient is accumulated in fp32, in place, by the op that computes it: the rule
// takes `gradient_sum(i, term)` as an input of its node, and hands back the node's output.
class BackwardContext {
 public:
  virtual ~BackwardContext() = default;

  virtual Graph& graph() = 0;
  virtual const Node& node() const = 0;
  ValueId input(int index) const { return node().inputs.at(index); }
  ValueId output(int index) const { return node().outputs.at(index); }

  // The gradient of an output: a value, kNoValue where the output does not reach the loss, or
  // kUnitGrad where it is a term of the loss itself. It is sharded as the output is and otherwise
  // Replicated: sums that users left Partial are reduced first, unless the op has `passes_pending`.
  virtual ValueId output_grad(int index) const = 0;
  // Whether an activation input needs a gradient (it depends on a parameter).
  virtual bool needs_grad(int index) const = 0;
  // Adds to the gradient of an activation input.
  virtual void add_input_grad(int index, ValueId grad) = 0;

  virtual bool is_parameter(int index) const = 0;
  // The running fp32 sum of a parameter input's gradient, and its successor. The sum adds up the
  // rows of `term` (the gradient that is summed), so it is Partial over an axis that splits those
  // rows but not the parameter.
  virtual ValueId gradient_sum(int index, ValueId term) = 0;
  virtual void set_gradient_sum(int index, ValueId sum) = 0;

  std::string name(int input_index) {  // "d.<value>" for naming gradients
    return "d." + graph().value(input(input_index)).name;
  }
};

}  // namespace skein

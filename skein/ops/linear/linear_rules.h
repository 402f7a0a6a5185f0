// Shared by the rules of linear and of its derivatives.
#pragma once

#include <initializer_list>
#include <string_view>

#include "skein/ops/checks.h"
#include "skein/ops/linear/linear.h"

namespace skein::linear_rules {

// The inputs that an op of the bundle has, in this order.
struct InputCounts {
  int lists = 0;           // lists of one input for each part
  int singles = 0;         // inputs that all parts share
  int fp8_magnitudes = 0;  // largest magnitudes; with the attr `fp8` alone
  int first_weight = -1;   // with the attr `kept_weights` one more input: the rounded copy of the
                           // weights that begin at this input; -1: the op keeps none
};

// The attr `parts`, after a check that the call has as many inputs as `counts` says.
int num_parts(const OpCall& call, const InputCounts& counts);

// What the op reads: all inputs, weights once.
int64_t bytes_read(const OpCall& call);

// The placement of a product of placed operands, on one axis.
struct PlacementRule {
  std::string_view a, b, result;
};

// Applies, on every axis, the rule that fits operands `a` and `b`; fails, naming both, if none
// does.
Placements match(const OpCall& call, int a, int b, std::initializer_list<PlacementRule> rules);

// begin, begin + 1, ...: the operands of a bundle.
std::vector<int> range(int begin, int count);

}  // namespace skein::linear_rules

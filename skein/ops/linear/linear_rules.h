// Shared by the rules of linear and of its derivatives.
#pragma once

#include <initializer_list>
#include <string_view>

#include "skein/ops/checks.h"
#include "skein/ops/linear/linear.h"

namespace skein::linear_rules {

// The attr `parts`, checked against the number of inputs: `lists` lists of `parts` inputs each,
// `singles` further inputs and, with the attr `fp8`, the largest magnitudes of `groups`; with
// `kept_weights` also the rounded weights, of what stands from input `weights` on (-1: of none).
int num_parts(const OpCall& call, int lists, int singles, int groups, int weights = -1);

// What the op reads: all inputs, weights once.
int64_t bytes_read(const OpCall& call);

// The placement of a product of placed operands, on one axis.
struct Rule {
  std::string_view a, b, result;
};

// Applies, on every axis, the rule that fits operands `a` and `b`; fails, naming both, if none
// does.
Placements match(const OpCall& call, int a, int b, std::initializer_list<Rule> rules);

// begin, begin + 1, ...: the operands of a bundle.
std::vector<int> range(int begin, int count);

}  // namespace skein::linear_rules

// What the rules of linear and of its derivatives share.
#pragma once

#include <initializer_list>
#include <string_view>

#include "skein/ops/checks.h"
#include "skein/ops/linear/linear.h"

namespace skein::linear_rules {

// The attr `parts`, checked against the number of inputs: `lists` lists of that many, and
// `singles`.
int num_parts(const OpCall& call, int lists, int singles);

// How a product of placed operands is placed, on one axis.
struct Rule {
  std::string_view a, b, result;
};

// On every axis, the rule that fits operands `a` and `b`; fails, naming both, where there is none.
Placements match(const OpCall& call, int a, int b, std::initializer_list<Rule> rules);

// begin, begin + 1, ...: operands of a bundle.
std::vector<int> range(int begin, int count);

}  // namespace skein::linear_rules

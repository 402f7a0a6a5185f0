// Three tiny ops for testing the IR without the real ones.
#pragma once

#include "skein/ir/op_def.h"

namespace skein::testing_ops {

inline std::vector<TensorType> same_as_first(const OpCall& call) { return {call.input(0)}; }

// y = a + b, in new memory.
inline constexpr OpDef kPlus = {.name = "plus", .infer = [](const OpCall& call) {
                                  call.check(call.input(0) == call.input(1), "{} does not match {}",
                                             call.describe(0), call.describe(1));
                                  return same_as_first(call);
                                }};

// a += b.
inline constexpr OpDef kAccumulate = {
    .name = "accumulate",
    .infer = [](const OpCall& call) { return same_as_first(call); },
    .layout = [](const OpCall&) { return Layout{.aliases = {{.output = 0, .input = 0}}}; }};

// y = x w, with the placements of a matrix product.
inline constexpr OpDef kTimes = {
    .name = "times", .infer = [](const OpCall& call) -> std::vector<TensorType> {
      static constexpr std::string_view kRules[] = {"S0 R -> S0", "R S1 -> S1", "S1 S0 -> P"};
      return {{call.input(0).dtype, Shape{call.input(0).shape.dim(0), call.input(1).shape.dim(1)},
               match_placements(call, {0, 1}, 1, kRules)[0]}};
    }};

inline OpTable table() { return {&kPlus, &kAccumulate, &kTimes}; }

}  // namespace skein::testing_ops

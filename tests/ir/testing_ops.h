// Tiny ops for testing the IR without the real ones.
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

// Views: (x) -> (the upper half of its rows, the lower half).
inline constexpr OpDef kHalves = {
    .name = "halves",
    .infer =
        [](const OpCall& call) {
          TensorType half = call.input(0);
          half.shape.set_dim(0, half.shape.dim(0) / 2);
          return std::vector<TensorType>{half, half};
        },
    .layout =
        [](const OpCall& call) {
          const int64_t half = call.input(0).shape.dim(0) / 2;
          return Layout{
              .aliases = {{.output = 0, .input = 0, .in_place = false},
                          {.output = 1, .input = 0, .in_place = false, .row_offset = half}}};
        }};

// A view of two values that lie one below the other: (a, b) -> x.
inline constexpr OpDef kBelow = {
    .name = "below",
    .infer =
        [](const OpCall& call) {
          TensorType x = call.input(0);
          x.shape.set_dim(0, x.shape.dim(0) + call.input(1).shape.dim(0));
          return std::vector<TensorType>{x};
        },
    .layout =
        [](const OpCall&) {
          return Layout{.aliases = {{.output = 0, .input = 0, .in_place = false}},
                        .bundles = {{.operands = {0, 1}, .required = true}}};
        }};

// y = x, begun by one and ended, in place, by the other: (x) {channel} -> (y).
inline constexpr OpDef kBegin = {.name = "begin", .infer = same_as_first, .ended_by = "end"};
inline constexpr OpDef kEnd = {.name = "end", .infer = same_as_first, .layout = [](const OpCall&) {
                                 return Layout{.aliases = {{.output = 0, .input = 0}}};
                               }};

inline OpTable table() {
  return {&kPlus, &kAccumulate, &kTimes, &kHalves, &kBelow, &kBegin, &kEnd};
}

}  // namespace skein::testing_ops

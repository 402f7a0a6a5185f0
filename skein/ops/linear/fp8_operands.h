// Which operands of linear and its derivatives are rounded to 8 bits if the node has the attr
// `fp8`, and their scales.
//
// Formula  operands of one group share one scale, the largest 2^k that keeps 2^k times their
//          largest magnitude in range. Values and weights are E4M3, incoming gradients E5M2
//          (skein/tensor/fp8.h). Products are summed in fp32; outputs, biases and gradient sums are
//          not rounded
// Operands the largest magnitude of each group, found by fp8_largest or by the op that writes the
//          values (skein/ops/largest.h), follows the op's own inputs: what several ops round is
//          looked through once
// Kept      with the attr `kept_weights` the weights were rounded before, by round_weights, and are
//          the last input: the op's own weights then only say their shapes
// Placement a rank's parts have scales of their own
#pragma once

#include <string_view>
#include <vector>

#include "skein/ir/graph.h"
#include "skein/ir/kernel.h"
#include "skein/tensor/fp8.h"

namespace skein {

// (x_1..x_n) -> f32[1]: the largest magnitude of all, NaNs left out; x of bf16, n <= 8, up to
// kMaxFp8Groups of them f32[1], which others have found already. Each rank finds that of its own
// parts, and calls it replicated since nobody sums or moves it. Memory-bound.
extern const OpDef kFp8Largest;

// (w_1..w_n, largest, rounded) -> (largest, rounded), in place: the weights of a product, rounded
// once for many. `largest` as of kFp8Largest. `rounded` bf16 [elements of a rank's parts],
// of which only a device's own kernels know what lies in it: on a CPU the rounded weights; on a GPU
// one E4M3 byte an element, row by row, and behind them all the same, column by column.
// Weights are read twice, and must be multiples of kFp8Multiple both ways.
extern const OpDef kRoundWeights;

inline bool is_fp8(const Attrs& attrs) { return attrs.has("fp8") && attrs.flag("fp8"); }

// Whether a GPU may add the products of 8-bit operands with fewer bits (matmul_cuda.h).
inline bool has_fast_accumulation(const KernelCall& call) {
  return call.attrs.has("fast_accumulation") && call.attrs.flag("fast_accumulation");
}

struct Fp8Group {
  int begin = 0, count = 0;  // among the inputs
  Fp8Format format;
};
inline constexpr int kMaxFp8Groups = 3;
inline constexpr int kFp8Weights = 1;  // the group of the weights, where there are any

// The groups of "linear", "linear_dx", "linear_dw" or "linear_dx_dw" with this number of parts.
inline std::vector<Fp8Group> fp8_groups(std::string_view op, int parts) {
  if (op == "linear") return {{0, 1, kE4M3}, {1, parts, kE4M3}};
  if (op == "linear_dx") return {{0, parts, kE5M2}, {parts, parts, kE4M3}};
  if (op == "linear_dw") return {{0, parts, kE5M2}, {parts, 1, kE4M3}};
  return {{0, parts, kE5M2}, {parts, parts, kE4M3}, {2 * parts, 1, kE4M3}};
}

// Whether the last input is weights that round_weights has rounded.
inline bool has_kept_weights(const Attrs& attrs, std::string_view op) {
  return op != "linear_dw" && attrs.has("kept_weights") && attrs.flag("kept_weights");
}

// Where the largest magnitudes of all groups begin among the inputs, in order.
inline int fp8_first_largest(std::string_view op, const Attrs& attrs, size_t num_inputs) {
  const auto groups = fp8_groups(op, static_cast<int>(attrs.integer("parts"))).size();
  return static_cast<int>(num_inputs - groups - (has_kept_weights(attrs, op) ? 1 : 0));
}

inline const float* fp8_largest_of(const KernelCall& call, std::string_view op, int group) {
  return call.inputs[fp8_first_largest(op, call.attrs, call.inputs.size()) + group]
      .as<const float>();
}

}  // namespace skein

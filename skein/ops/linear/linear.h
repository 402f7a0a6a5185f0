// y_i = x w_i^T (+ b_i): several projections of one x, computed as one matrix product if they lie
// side by side (wq, wk, wv; gate, up).
//
// Formulas      linear     y_i[t,o]  = sum_k x[t,k] w_i[o,k] (+ b_i[o])
//               linear_dx  dx[t,k]   = sum_i sum_o dy_i[t,o] w_i[o,k]
//               linear_dw  g_i[o,k] += sum_t dy_i[t,o] x[t,k]
//               linear_db  h_i[o]   += sum_t dy_i[t,o]
//               linear_dx_dw         linear_dx and linear_dw of the same dy: what is made of dy for
//                                    a product, as copies of 8 bits, is made once
// Shapes        x, dx [T, I]; w_i [O_i, I]; b_i, h_i [O_i]; y_i, dy_i [T, O_i]; g_i [O_i, I];
//               i = 1..n <= 8
// Dtypes        x, w, b, dy: one of f32 and bf16; y the same, or f32 with `f32_output`; g, h f32
// Operands      linear     x, w_1..w_n [, b_1..b_n]      {parts, bias, f32_output}
//               linear_dx  dy_1..dy_n, w_1..w_n          {parts}
//               linear_dw  dy_1..dy_n, x, g_1..g_n       {parts}; g in place
//               linear_db  dy_1..dy_n, h_1..h_n          {parts}; h in place
//               linear_dx_dw  dy_1..dy_n, w_1..w_n, x, g_1..g_n {parts}: dx, g_1..g_n; g in place
//               With {from_zero} linear_dw and linear_dx_dw take g for zero, whatever it holds
//               With {fp8} the largest magnitudes follow, with {kept_weights} also the rounded
//               weights (skein/ops/linear/fp8_operands.h)
// Layout        y (dy) side by side along dim 1; w, b (g, h) along dim 0: preferred, not required
// Accumulation  fp32, over all parts, rounded once
// Backward      saves x; reads w
// Cost          2 T I sum(O_i) flops each
// Placement     per axis and part: x R,  w R  -> y R          x S0, w R -> y S0
//                                  x R,  w S0 -> y S1 (column parallel)
//                                  x S1, w S1 -> y P  (row parallel)
//               and P, w R -> P; parts may differ (a factored axis); b is placed as w's rows, and
//               is P where y is
// Errors        Error{kInvalid} naming the operands that do not fit
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kLinear;
extern const OpDef kLinearDx;
extern const OpDef kLinearDw;
extern const OpDef kLinearDb;
extern const OpDef kLinearDxDw;

inline constexpr int kMaxLinearParts = 8;

// The attr of products that begin gradient sums. A graph has it where a micro-batch's first
// addition to a sum is; of what runs it is true in the first micro-batch (passes/begin_sums.h).
inline constexpr std::string_view kFromZero = "from_zero";
inline bool is_from_zero(const Attrs& attrs) {
  return attrs.has(kFromZero) && attrs.flag(kFromZero);
}

// `biases` is empty, or has one per weight. Returns one output per weight, named by `names`.
std::vector<ValueId> linear(Graph& graph, ValueId x, const std::vector<ValueId>& weights,
                            const std::vector<ValueId>& biases,
                            const std::vector<std::string>& names, bool f32_output = false);

ValueId linear_dx(Graph& graph, const std::vector<ValueId>& dy, const std::vector<ValueId>& weights,
                  const std::string& name);
// Return the successors of `sums`.
std::vector<ValueId> linear_dw(Graph& graph, const std::vector<ValueId>& dy, ValueId x,
                               const std::vector<ValueId>& sums);
std::vector<ValueId> linear_db(Graph& graph, const std::vector<ValueId>& dy,
                               const std::vector<ValueId>& sums);

}  // namespace skein

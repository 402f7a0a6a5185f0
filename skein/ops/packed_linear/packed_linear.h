// y = x w^T (+ b) of a weight that was packed for the products of this device when it was loaded. A
// product of few rows then reads the weight once, and packs nothing: generation multiplies one row
// for each text.
//
// Formulas      packed_linear  y[t,o] = sum_k x[t,k] w[o,k] (+ b[o])
//               pack_weight    packed = w, in the order in which products read it
// Shapes        x [T, I]; packed [words]; b [O]; y [T, O]; w [O, I]
// Dtypes        x, w, b: one of f32 and bf16; packed i32; y that of x, or f32 with `f32_output`
// Operands      packed_linear  x, packed [, b]   {out, bias, f32_output}
//               pack_weight    w
// Accumulation  fp32 in order of k, one chain for each y: the bits of `linear`, and the same for a
//               row whatever other rows the call has
// Backward      none
// Cost          2 T I O flops; packed is read once
// Placement     whole on one rank
// Where         CPUs. A GPU's products pack nothing: there `linear` reads w
// Errors        Error{kInvalid} naming the operands that do not fit
#pragma once

#include <cstdint>
#include <string>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kPackedLinear;  // (x, packed [, b]) -> y
extern const OpDef kPackWeight;    // (w) -> packed

// 32-bit words of a packed weight [out, in], on this CPU.
int64_t packed_weight_words(DType dtype, int64_t out, int64_t in);

// `bias` may be kNoValue.
ValueId packed_linear(Graph& graph, ValueId x, ValueId packed, ValueId bias, int64_t out,
                      const std::string& name, bool f32_output);

}  // namespace skein

// The same value placed otherwise over one mesh axis: the only source of collectives.
//
//   P  -> S<d>  reduce-scatter      S<d> -> R  all-gather
//   P  -> R     all-reduce          R -> S<d>  a slice, nothing on the wire
//
// Formula     the value stays; its local parts change (skein/tensor/tensor_type.h)
// Shapes      any; every dtype that is summed is f32, bf16 or f64
// Derivative  The loss depends on local parts. Let dY be the gradient of the whole value Y.
//               x Partial     Y = x_0 + x_1 + ..., so dL/dx_r = dY on every rank r: dx is dY, R
//               x S<d>        dL/dx_r is the slice of dY that rank r holds: dx is S<d>
//               x Replicated  every rank holds Y itself: dx is dY, R
//             So dx is dy redistributed to R, S<d> and R. dy arrives placed as its users left it:
//             as y is, or Partial where they each saw only a part of the work (a column-parallel
//             product of a replicated y). The collective of the derivative follows from that alone:
//               P -> S  dy S: all-gather           S -> R  dy P: reduce-scatter, dy R: slice
//               P -> R  dy R: nothing, dy P: all-reduce      R -> S  dy S: all-gather
// Cost        local memory read and written; a sum of n terms is n - 1 additions an element. What
//             goes over the wire is the collective's to say
// Errors      kInvalid: an axis that the mesh lacks; a placement that it has already; S -> S' (go
//             through R); R -> P; a dim that the axis does not divide
// Source      Shoeybi et al., arXiv:1909.08053 (conjugate f and g); Xu et al., arXiv:2105.04663
#pragma once

#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// (x) {axis, to} -> y. The CPU kernel is that of an axis of size 1, a copy, which lowering removes;
// over larger axes lowering puts a collective in its place.
extern const OpDef kRedistribute;

// Names the result "<value>.<axis>.<placement>".
ValueId redistribute(Graph& graph, ValueId value, std::string_view axis, Placement to);

}  // namespace skein

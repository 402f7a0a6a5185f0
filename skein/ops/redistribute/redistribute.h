// The same value placed otherwise over one mesh axis: the only source of collectives.
//
//   P  -> S0, F   reduce-scatter      S0, F -> R      all-gather
//   P  -> R       all-reduce          R  -> S<d>, F   a slice, nothing on the wire
//
// Formula     the value stays; its local parts change (skein/tensor/tensor_type.h). Sums have the
//             order of skein/comm/communicator.h: a binary tree over the ranks of the axis
// Shapes      any; every dtype that is summed is f32, bf16, f64 or i32
// Derivative  The loss depends on local parts. Let dY be the gradient of the whole value Y.
//               x Partial     Y = x_0 + x_1 + ..., so dL/dx_r = dY on every rank r: dx is dY, R
//               x S<d>        dL/dx_r is the slice of dY that rank r holds: dx is S<d>
//               x Replicated  every rank holds Y itself: dx is dY, R
//             So dx is dy redistributed to R, S<d> and R. dy arrives placed as its users left it:
//             as y is, or Partial where they each saw only a part of the work (a column-parallel
//             product of a replicated y). The collective of the derivative follows from that alone:
//               P -> S  dy S: all-gather           S -> R  dy P: reduce-scatter, dy R: slice
//               P -> R  dy R: nothing, dy P: all-reduce      R -> S  dy S: all-gather
// Memory      P -> R is in place. Operands with gaps between their rows go through scratch
// Cost        local memory read and written; a sum of n terms is n - 1 additions an element; what
//             goes over the wire is what skein/comm/communicator.h says
// Errors      kInvalid: an axis that the mesh lacks; a placement that it has already; S -> S' (go
//             through R); R -> P; a dim that the axis does not divide; a collective over S<d>, d >
//             0; a dim that an inner axis splits as well (undo that one first); kPeerLost
// Source      Shoeybi et al., arXiv:1909.08053 (conjugate f and g); Xu et al., arXiv:2105.04663
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"
#include "skein/ir/kernel.h"

namespace skein {

struct Collective;

// (x...) {axis, to} -> (y...), or (x..., t...) {axis, to, into} -> (y...), each y in the memory of
// its t. Values of one node travel together; they are placed alike over the axis. With {pending}
// what is Replicated by its type is a term of a sum all the same: the stages of a pipeline have
// graphs of their own, and over `pp` each brings what the others do not have.
extern const OpDef kRedistribute;

// The same in two halves, between which the rank computes: what a start reads and writes belongs to
// the collective until its wait, which has the outputs of the node that the two replace. Operands
// without gaps between rows only; {channel} tells the pairs apart.
extern const OpDef kRedistributeStart;  // (x..., [t...]) -> (y..., staging)
extern const OpDef kRedistributeWait;   // (y..., staging, x...) -> (y'...)

struct RedistributeHalves {
  Node start;
  Node wait;
};
// For a redistribute `node` of the graph, whose place in the list of nodes the two are to take.
RedistributeHalves split_redistribute(Graph& graph, const Node& node, int64_t channel);

// Names the result "<value>.<axis>.<placement>".
ValueId redistribute(Graph& graph, ValueId value, std::string_view axis, Placement to);

// Several values in one collective. `into`: values of the results' types that are overwritten.
std::vector<ValueId> redistribute(Graph& graph, const std::vector<ValueId>& values,
                                  std::string_view axis, Placement to,
                                  const std::vector<ValueId>& into = {});

// The sum over an axis of what each rank's own graph takes to be whole; of several values in one
// collective.
ValueId sum_over(Graph& graph, ValueId value, std::string_view axis);
std::vector<ValueId> sum_over(Graph& graph, const std::vector<ValueId>& values,
                              std::string_view axis);

// To `wanted` on every axis, one axis at a time, in the order that is legal: what becomes whole
// first, from the inner axes out; then what is split, from the outer axes in. The value itself
// where it is placed so already.
ValueId redistribute_all(Graph& graph, ValueId value, const Placements& wanted);

// Whether redistribute would accept this, on an axis of this type's mesh.
bool can_redistribute(const TensorType& type, const Mesh& mesh, int axis, Placement to);

// What a bound redistribute or redistribute_start asks of its communicator: what a plan counts is
// what runs. `kind` is kBarrier where nothing goes over the wire.
Collective collective_of(const KernelCall& call);

}  // namespace skein

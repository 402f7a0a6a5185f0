// Changes the placement of a value over one mesh axis: the only source of collectives in a graph.
//
//   P  -> S0, F   reduce-scatter      S0, F -> R      all-gather
//   P  -> R       all-reduce          R  -> S<d>, F   a slice, nothing on the wire
//
// Formula     the value stays the same; its local parts change (skein/tensor/tensor_type.h). Sums
//             have the order of skein/comm/communicator.h: a binary tree over the ranks of the axis
// Shapes      any; every dtype that is summed is f32, bf16, f64 or i32
// Derivative  The loss depends on local parts. Let dY be the gradient of the whole value Y.
//               x Partial     Y = x_0 + x_1 + ..., so dL/dx_r = dY on every rank r: dx is dY, R
//               x S<d>        dL/dx_r is the slice of dY that rank r holds: dx is S<d>
//               x Replicated  every rank holds Y itself: dx is dY, R
//             So dx is dy redistributed to R, S<d> and R. dy has the placement that its users left:
//             that of y, or Partial if each rank saw only a part of the work (a column-parallel
//             product of a replicated y). The collective of the derivative follows from that alone:
//               P -> S  dy S: all-gather           S -> R  dy P: reduce-scatter, dy R: slice
//               P -> R  dy R: nothing, dy P: all-reduce      R -> S  dy S: all-gather
// Ranges      of a range (F over an outer axis) are cut from all that it holds: the padding behind
//             it is part of what moves, so that every rank of the mesh moves as much
// Memory      P -> R is in place, except for i32. Operands with gaps between rows go through
//             scratch
// Cost        local memory read and written; a sum of n terms is n - 1 additions an element; the
//             bytes on the wire are those of skein/comm/communicator.h
// Errors      kInvalid: an axis that the mesh lacks; a placement that it already has; S -> S' (go
//             through R); R -> P; a dim that the axis does not divide; a collective over S<d>, d >
//             0, but to gather the columns of a matrix; a dim that an inner axis splits as well, or
//             F over an axis inside of which it is F (undo that one first); kPeerLost
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
// its t. The values of one node share a collective and have the same placement over the axis. With
// {pending}, a value that is Replicated by its type is treated as a term of a sum: pipeline stages
// have graphs of their own, and over `pp` each contributes what the others do not have.
extern const OpDef kRedistribute;

// The same as two ops, between which the rank computes: what the start reads and writes belongs to
// the collective until the wait, which has the outputs of the node that the two replace. Only for
// results without gaps between rows, and such terms of sums; {channel} identifies the pair. With
// {copies} the wait copies a sum to where it belongs, which may have gaps. With {over_terms} a sum
// to R takes the place of its terms, as in one op; the wait is then without x. With {advances} the
// start sees that sums over the axis that began before it go on (Communicator::advance_before);
// those of NCCL do by themselves.
extern const OpDef kRedistributeStart;  // (x..., [t...]) -> (y..., staging)
extern const OpDef kRedistributeWait;   // (y..., staging, x...) -> (y'...)

struct RedistributeHalves {
  Node start;
  Node wait;
};
// For a redistribute `node` of the graph, of whose scope, phase and chunk both are; the caller puts
// them in its place in the list of nodes.
enum class Results : uint8_t { kInPlace, kCopied, kOverTerms };
RedistributeHalves split_redistribute(Graph& graph, const Node& node, int64_t channel,
                                      Results results = Results::kInPlace);

// Names the result "<value>.<axis>.<placement>".
ValueId redistribute(Graph& graph, ValueId value, std::string_view axis, Placement to);

// Several values in one collective. `into`: values of the results' types to overwrite.
std::vector<ValueId> redistribute(Graph& graph, const std::vector<ValueId>& values,
                                  std::string_view axis, Placement to,
                                  const std::vector<ValueId>& into = {});

// The sum over an axis of what each rank's own graph considers whole; of several values in one
// collective.
ValueId sum_over(Graph& graph, ValueId value, std::string_view axis);
std::vector<ValueId> sum_over(Graph& graph, const std::vector<ValueId>& values,
                              std::string_view axis);

// Redistributes to `wanted` on every axis, one axis at a time, in a legal order: first what becomes
// whole, from the inner axes out; then what is split, from the outer axes in. Returns the value
// itself if it already has these placements.
ValueId redistribute_all(Graph& graph, ValueId value, const Placements& wanted);

// Whether redistribute would accept this, on an axis of this type's mesh, and whether a pass may
// choose it: to gather columns takes another pass over memory, so only ops that need it ask for it.
bool can_redistribute(const TensorType& type, const Mesh& mesh, int axis, Placement to);

// The collective that a bound redistribute or redistribute_start runs; a plan counts the same one.
// `kind` is kBarrier if nothing is sent.
Collective collective_of(const KernelCall& call);

}  // namespace skein

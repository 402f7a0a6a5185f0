#include "skein/ops/sum_squares/sum_squares.h"

#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

std::string pending_over(const OpCall& call) {
  return call.attrs.has("pending_over") ? call.attrs.text("pending_over") : "";
}

Placement place_bins(const OpCall& call, int axis) {
  const std::string& name = call.mesh.axis(axis).name;
  const bool whole = call.input(0).placements.at(axis).is_replicated();
  for (int i = 0; i < call.num_inputs(); ++i) {
    const Placement placement = call.input(i).placements.at(axis);
    call.check(!placement.is_partial(), "{} is still pending over {}: redistribute it first",
               call.describe(i), name);
    call.check(placement.is_replicated() == whole,
               "{} and {} are not both split over {}: they need sums of their own",
               call.describe(0), call.describe(i), name);
  }
  if (name != pending_over(call)) return whole ? Placement::replicated() : Placement::partial();
  call.check(whole, "{} is split over {}, which owes the sum anyway: leave out pending_over",
             call.describe(0), name);
  return Placement::partial();
}

std::vector<TensorType> infer(const OpCall& call) {
  call.check(call.num_inputs() > 0, "nothing to sum");
  for (int i = 0; i < call.num_inputs(); ++i) {
    const TensorType& x = call.input(i);
    call.check(is_compute_dtype(x.dtype) && x.shape.num_elements() > 0,
               "{} must be f32 or bf16, and not empty", call.describe(i));
  }
  const std::string pending = pending_over(call);
  call.check(pending.empty() || call.mesh.find(pending) >= 0, "{} has no axis '{}'",
             call.mesh.to_string(), pending);
  TensorType bins = TensorType::replicated(DType::kF64, Shape{exact_sum::kBins}, call.mesh);
  for (int axis = 0; axis < call.mesh.num_axes(); ++axis) {
    bins.placements[axis] = place_bins(call, axis);
  }
  return {bins};
}

Cost cost(const OpCall& call) {
  double elements = 0;
  for (const TensorType* x : call.inputs) elements += x->local_shape(call.mesh).num_elements();
  return {2 * elements, input_bytes(call), output_bytes(call)};
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  std::vector<int64_t> counts;
  for (const TensorType* x : call.inputs) counts.push_back(x->local_range(call.mesh, rank).count);
  attrs.set("counts", counts);
}

}  // namespace

const OpDef kSumSquares = {
    .name = "sum_squares", .infer = infer, .cost = cost, .localize = localize};

std::vector<const OpDef*> sum_squares_ops() { return {&kSumSquares}; }

ValueId sum_squares(Graph& graph, const std::vector<ValueId>& values, const std::string& name,
                    std::string_view pending_over) {
  return graph.add1(kSumSquares, values, {{"pending_over", std::string(pending_over)}}, name);
}

}  // namespace skein

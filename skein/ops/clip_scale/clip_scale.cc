#include "skein/ops/clip_scale/clip_scale.h"

#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  check_type(call, 0, DType::kF64, {exact_sum::kBins});
  check_type(call, 1, DType::kI32, {1});
  const double max_norm = call.attrs.real("max_norm");
  call.check(max_norm >= 0, "max_norm is {}: expected a positive number, or 0 for no clipping",
             max_norm);
  const auto placements = match_placements(call, {0, 1}, 2, {});
  return {{DType::kF32, Shape{1}, placements[0]}, {DType::kF32, Shape{1}, placements[1]}};
}

Cost cost(const OpCall& call) { return {6, input_bytes(call), output_bytes(call)}; }

}  // namespace

const OpDef kClipScale = {.name = "clip_scale", .infer = infer, .cost = cost};

std::vector<const OpDef*> clip_scale_ops() { return {&kClipScale}; }

ClipScale clip_scale(Graph& graph, ValueId norm_sum, ValueId num_tokens, double max_norm,
                     const std::string& scale_name, const std::string& norm_name) {
  const auto outputs = graph.add(kClipScale, {norm_sum, num_tokens}, {{"max_norm", max_norm}},
                                 {scale_name, norm_name});
  return {outputs[0], outputs[1]};
}

}  // namespace skein

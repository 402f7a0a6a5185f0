#include "skein/ops/token_scores/token_scores.h"

#include <array>

#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& logits = check_matrix(call, 0);
  const int64_t rows = logits.shape.dim(0);
  call.check(logits.dtype == DType::kF32 && logits.shape.dim(1) > 0,
             "{} must be f32 and have columns", call.describe(0));
  check_type(call, 1, DType::kI32, {rows});
  static constexpr std::array<std::string_view, 1> kRules = {"S0 S0 -> S0 S0 S0"};
  const auto placements = match_placements(call, {0, 1}, 3, kRules);
  return {{DType::kF32, Shape{rows}, placements[0]},
          {DType::kI32, Shape{rows}, placements[1]},
          {DType::kF32, Shape{rows}, placements[2]}};
}

Cost cost(const OpCall& call) {
  const auto logits = static_cast<double>(call.input(0).local_shape(call.mesh).num_elements());
  return {10 * logits, input_bytes(call), output_bytes(call)};
}

}  // namespace

const OpDef kTokenScores = {.name = "token_scores", .infer = infer, .cost = cost};

std::vector<const OpDef*> token_scores_ops() { return {&kTokenScores}; }

TokenScores token_scores(Graph& graph, ValueId logits, ValueId labels,
                         const std::string& logprob_name, const std::string& best_name,
                         const std::string& best_logprob_name) {
  const auto outputs =
      graph.add(kTokenScores, {logits, labels}, {}, {logprob_name, best_name, best_logprob_name});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace skein

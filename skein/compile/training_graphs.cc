#include <algorithm>
#include <span>

#include "skein/compile/step_programs.h"
#include "skein/model/decoder.h"
#include "skein/model/placement.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/passes/begin_sums.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/fuse_residual.h"
#include "skein/passes/hoist_transient.h"
#include "skein/passes/overlap/overlap.h"
#include "skein/passes/overlap/overlap_layers.h"
#include "skein/passes/parallel/shard.h"
#include "skein/passes/parallel/take_stage.h"
#include "skein/passes/parallel/zero.h"
#include "skein/passes/simplify.h"
#include "skein/passes/use_fp8.h"

namespace skein {
namespace {

constexpr std::string_view kTakeStage = "take_stage";

DecoderOptions decoder_options(const StepSpec& spec) {
  DecoderOptions options;
  options.compute_dtype = compute_dtype(spec.update.precision);
  options.sequences = spec.micro_sequences * spec.layout.data_degree();
  options.token_ranks = spec.layout.data_degree() * spec.layout.mesh.size("cp");
  options.sequence_length = spec.sequence_length;
  options.vocabulary_ranks = vocabulary_ranks(spec.layout.mesh);
  options.documents = spec.documents;
  options.repeatable = spec.repeatable;
  options.head_block_tokens = spec.head_block_tokens;
  return options;
}

ChunkOfScope chunks_of_scopes(const StepSpec& spec) {
  return chunks_by_layers(spec.model.num_hidden_layers, spec.pipeline().num_chunks());
}

Graph stage_of(const Graph& graph, const StepSpec& spec) {
  return take_stage(graph, spec.pipeline(), chunks_of_scopes(spec), spec.layout.stage());
}

ShardPlan shard_plan(const StepSpec& spec) {
  ShardPlan plan;
  plan.place = decoder_placements(spec.model, spec.layout.mesh);
  if (!spec.layout.sequence) {
    for (const std::string& axis : tensor_axes(spec.layout.mesh)) plan.whole_rows.insert(axis);
  }
  return plan;
}

// The first and the last stage exchange the gradients of the parameters that they share.
UpdateOptions update_options(const StepSpec& spec) {
  UpdateOptions options = spec.update;
  const int64_t last = spec.pipeline().num_stages - 1;
  for (const std::string& name : shared_parameters(spec)) {
    if (options.stage == 0) options.shared_with_stage[name] = last;
    if (options.stage == last) options.shared_with_stage[name] = 0;
  }
  return options;
}

// Each rank has the losses of the tokens whose rows it holds.
void keep_token_losses(Graph& graph) {
  const ValueId losses = graph.find(decoder_names::kTokenLoss);
  if (losses == kNoValue) fail(ErrorCode::kInternal, "the model has no token_loss");
  Placements wanted = graph.type(losses).placements;
  for (Placement& one : wanted) {
    if (one.is_partial()) one = Placement::replicated();
  }
  const ValueId whole = redistribute_all(graph, losses, wanted);
  if (whole != losses) {
    graph.rename(losses, "token_loss.partial");
    graph.rename(whole, decoder_names::kTokenLoss);
  }
  graph.mark_output(whole);
}

std::span<const Pass> until_stage(const std::vector<Pass>& passes) {
  const auto at = std::find_if(passes.begin(), passes.end(),
                               [](const Pass& pass) { return pass.name == kTakeStage; });
  return {passes.begin(), at};
}

std::span<const Pass> from_stage(const std::vector<Pass>& passes) {
  return std::span(passes).subspan(until_stage(passes).size());
}

}  // namespace

StepPasses step_passes(const StepSpec& spec) {
  const bool is_staged = spec.pipeline().num_stages > 1;
  const Pass takes_stage = {kTakeStage, "cuts one stage out; adds sends and receives",
                            [&](Graph& g) { g = stage_of(g, spec); }, is_staged};
  const Pass shards_weights = {"shard_weights", "splits weights, gathers them to use (ZeRO 3)",
                               shard_weights, spec.layout.zero >= 3};
  StepPasses passes;
  passes.model = {
      {"build_decoder", "writes the forward pass down, over whole tensors",
       [&](Graph& g) { build_decoder(g, spec.model, decoder_options(spec)); }},
      {"shard", "places tensors on the ranks; says what moves",
       [&](Graph& g) { g = shard(g, shard_plan(spec)); }},
  };
  passes.training = {
      {"differentiate", "appends the backward pass",
       [](Graph& g) { differentiate(g, g.outputs().front()); }, true, Transients::kToBeHoisted},
      {"hoist_transient", "has one block of logits alive at a time", hoist_transient},
      {"recompute", "does forward work again instead of keeping it",
       [&](Graph& g) { recompute(g, spec.recompute); }},
      {"use_fp8", "gives the layers' products 8-bit operands",
       [&](Graph& g) {
         use_fp8(g, {spec.fast_accumulation, spec.keep_fp8_weights, chunks_of_scopes(spec)});
       },
       spec.fp8},
      {"shard_gradients", "splits gradient sums over ranks (ZeRO 2)", shard_gradients,
       spec.layout.zero >= 2 && runs_one_micro_batch(spec)},
      shards_weights,
      takes_stage,
      {"append_update", "appends sums over ranks, clipping and the optimizer",
       [&](Graph& g) { append_update(g, update_options(spec)); }},
      {"simplify", "drops what one rank has not to do", simplify},
      {"fuse_residual", "has norms add what they follow", fuse_residual},
      {"begin_sums", "has the first micro-batch store gradient sums", begin_sums},
      {"overlap_layers", "has the layers' collectives travel beside computation",
       [&](Graph& g) {
         overlap_layers(g, spec.in_pairs ? SplitCollectives::kAll : SplitCollectives::kHidden);
       },
       spec.overlap},
      {"offload", "has activations wait in host memory",
       [&](Graph& g) { offload(g, *spec.offload_activations); },
       spec.offload_activations.has_value()},
      {"overlap", "starts the update's collectives early, waits late",
       [&](Graph& g) { overlap(g, spec.layout.shares().most() == 1); }, spec.overlap},
  };
  passes.evaluation = {
      {"keep_token_losses", "has the loss of each token as an output", keep_token_losses,
       spec.token_losses},
      shards_weights,
      takes_stage,
      {"append_loss_total", "appends the sum of the loss over ranks", append_loss_total},
      {"simplify", "drops what one rank has not to do", simplify},
      {"fuse_residual", "has norms add what they follow", fuse_residual},
  };
  return passes;
}

TrainingGraphs whole_graphs(const StepSpec& spec, const AfterPass& after, Checks checks) {
  const bool verified = checks == Checks::kAll;
  const StepPasses passes = step_passes(spec);
  Graph training(spec.layout.mesh);
  run_passes(passes.model, training, after, verified);
  Graph evaluation = training;
  run_passes(until_stage(passes.evaluation), evaluation, {}, verified);
  run_passes(until_stage(passes.training), training, after, verified);
  return {std::move(training), std::move(evaluation)};
}

TrainingGraphs stage_graphs(TrainingGraphs whole, const StepSpec& spec, const AfterPass& after,
                            Checks checks) {
  const bool verified = checks == Checks::kAll;
  const StepPasses passes = step_passes(spec);
  run_passes(from_stage(passes.evaluation), whole.evaluation, {}, verified);
  run_passes(from_stage(passes.training), whole.training, after, verified);
  return whole;
}

TrainingGraphs training_graphs(const StepSpec& spec, const AfterPass& after, Checks checks) {
  return stage_graphs(whole_graphs(spec, after, checks), spec, after, checks);
}

}  // namespace skein

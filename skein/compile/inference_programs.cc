#include "skein/compile/inference_programs.h"

#include "skein/passes/fuse_residual.h"
#include "skein/passes/memory/plan_memory.h"
#include "skein/passes/pass.h"
#include "skein/passes/simplify.h"

namespace skein {
namespace {

ProgramSet inference_programs(const DecoderConfig& model, DecoderPurpose purpose,
                              DType compute_dtype, int64_t sequence_length,
                              const KernelTable& kernels) {
  DecoderOptions options;
  options.purpose = purpose;
  options.compute_dtype = compute_dtype;
  options.sequence_length = sequence_length;
  Graph graph{Mesh()};  // one sequence on one rank: nothing is split
  const std::vector<Pass> passes = {
      {"build_decoder", "writes the forward pass down, over whole tensors",
       [&](Graph& g) { build_decoder(g, model, options); }},
      {"simplify", "drops what one rank has not to do", simplify},
      {"fuse_residual", "has norms add what they follow", fuse_residual},
  };
  run_passes(passes, graph);
  return plan_memory({{&graph, "forward", "", ""}}, kernels);
}

}  // namespace

ProgramSet scoring_programs(const DecoderConfig& model, DType compute_dtype,
                            int64_t sequence_length, const KernelTable& kernels) {
  return inference_programs(model, DecoderPurpose::kScore, compute_dtype, sequence_length, kernels);
}

ProgramSet generation_programs(const DecoderConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels) {
  return inference_programs(model, DecoderPurpose::kGenerate, compute_dtype, sequence_length,
                            kernels);
}

ProgramSet evaluation_programs(const StepSpec& spec, const KernelTable& kernels) {
  const StepPasses passes = step_passes(spec);
  Graph graph(spec.layout.mesh);
  run_passes(passes.model, graph);
  run_passes(passes.evaluation, graph);
  return plan_memory({{&graph, "evaluate", "", "evaluate_total", {}}}, kernels, spec.layout.rank);
}

}  // namespace skein

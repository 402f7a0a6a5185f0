#include "skein/compile/inference_programs.h"

#include "skein/compile/forward_graph.h"
#include "skein/passes/memory/plan_memory.h"
#include "skein/passes/pass.h"

namespace skein {
namespace {

ProgramSet inference_programs(const DecoderConfig& model, DecoderPurpose purpose,
                              DType compute_dtype, int64_t sequence_length,
                              const KernelTable& kernels) {
  DecoderOptions options;
  options.purpose = purpose;
  options.compute_dtype = compute_dtype;
  options.sequence_length = sequence_length;
  const Graph graph = forward_graph(model, options);
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

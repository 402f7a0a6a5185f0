// From a configuration to the programs of a run: the list of passes, and what follows it,
// plan_memory.
//
// Programs  forward, backward (a micro-batch each; "forward.<chunk>" where a stage has several
//           chunks; "backward.last" for the last micro-batch, where sums start there), update (a
//           step); evaluate (a micro-batch's loss alone), evaluate_total; and where a rank hosts
//           several virtual ranks push.<level> and merge.<level> (a branch of the tree of gradient
//           sums each). All share the weights; evaluate shares the workspace with training.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "skein/backends/backend.h"
#include "skein/compile/parallel.h"
#include "skein/config/config.h"
#include "skein/ir/program.h"
#include "skein/model/decoder.h"
#include "skein/optim/update.h"
#include "skein/passes/offload.h"
#include "skein/passes/pass.h"
#include "skein/passes/recompute.h"
#include "skein/runtime/device.h"
#include "skein/schedule/pipeline.h"

namespace skein {

struct StepSpec {
  ParallelLayout layout;
  DecoderConfig model;
  int64_t micro_sequences = 1;
  int64_t sequence_length = 0;
  int64_t micro_batches = 1;  // of this rank, in a step
  RecomputePolicy recompute = RecomputePolicy::kSelective;
  UpdateOptions update;
  bool offload_optimizer = false;
  std::optional<OffloadOptions> offload_activations;  // none: they stay on the device
  bool fp8 = false;  // products of the layers from 8-bit operands, in training
};

// The model of [model]; a vocab_size that it does not name is the tokenizer's. Throws Error{kUsage}
// where it cannot be.
DecoderConfig model_of(const Config& config, std::optional<int64_t> tokenizer_vocab_size);

// What device.kind says. Throws Error{kUsage} in a build without it.
const Backend& training_backend(const Config& config);
// The kernels of [device]; planning needs no more.
KernelTable training_kernels(const Config& config);
// The device of [device] for the worker `local_rank` of this node.
std::unique_ptr<Device> training_device(const Config& config, int local_rank = 0);

StepSpec step_spec(const Config& config, const DecoderConfig& model,
                   const ParallelLayout& layout = {});

PipelineShape pipeline_shape(const StepSpec& spec);
// Parameters that both the first and the last stage have; the first stores them.
std::set<std::string> shared_parameters(const StepSpec& spec);

// After all passes but the last, of the stage of the spec's rank.
struct TrainingGraphs {
  Graph training;
  Graph evaluation;
};
TrainingGraphs training_graphs(const StepSpec& spec, const AfterPass& after = {});

// Every pass in order, those that are off for this spec among them; `spec` must outlive them.
// Evaluation parts from training behind `model`. What `plan_training` does then is give out memory.
struct StepPasses {
  std::vector<Pass> model, training, evaluation;
};
StepPasses step_passes(const StepSpec& spec);

ProgramSet plan_training(const TrainingGraphs& graphs, const StepSpec& spec,
                         const KernelTable& kernels);

// "forward" of a chunk, "push" of a level and chunk, …; `several`: the stage has more than one.
std::string chunk_program(std::string_view name, int64_t chunk, bool several);

// Scoring: program `forward`, inputs tokens, labels, positions, attention_start; output
// `token_loss`. Generation: output `logits` of row `last_row`.
ProgramSet scoring_programs(const DecoderConfig& model, DType compute_dtype,
                            int64_t sequence_length, const KernelTable& kernels);
ProgramSet generation_programs(const DecoderConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels);

}  // namespace skein

// From a configuration to the programs of a run: the list of passes, in order.
//
//   build_llama → differentiate → hoist_transient → append_update → recompute → lower → plan_memory
//
// Programs  forward, backward (a micro-batch each), update (a step), evaluate (a micro-batch's loss
//           alone). All share the weights; evaluate shares the workspace with training.
#pragma once

#include "skein/ir/program.h"
#include "skein/model/llama/config.h"
#include "skein/optim/update.h"
#include "skein/passes/recompute.h"
#include "skein/train/config.h"

namespace skein {

struct StepSpec {
  Mesh mesh = Mesh::standard(1, 1, 1, 1);
  LlamaConfig model;
  int64_t micro_sequences = 1;
  int64_t sequence_length = 0;
  RecomputePolicy recompute = RecomputePolicy::kSelective;
  UpdateOptions update;
};

// Throws Error{kUnsupported} where the configuration asks for more than one worker.
void refuse_parallel(const Config& config);

StepSpec step_spec(const Config& config, const LlamaConfig& model);

// After all passes but the last.
struct TrainingGraphs {
  Graph training;
  Graph evaluation;
};
TrainingGraphs training_graphs(const StepSpec& spec);

ProgramSet plan_training(const TrainingGraphs& graphs, const KernelTable& kernels);

// Scoring: program `forward`, inputs tokens, labels, positions, attention_start; output
// `token_loss`. Generation: output `logits` of row `last_row`.
ProgramSet scoring_programs(const LlamaConfig& model, DType compute_dtype, int64_t sequence_length,
                            const KernelTable& kernels);
ProgramSet generation_programs(const LlamaConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels);

}  // namespace skein

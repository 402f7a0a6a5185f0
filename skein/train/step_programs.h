// From a configuration to the programs of a run: the list of passes, in order.
//
//   build_llama → differentiate → hoist_transient → append_update → recompute → lower → plan_memory
//
// Programs  forward, backward (a micro-batch each), update (a step), evaluate (a micro-batch's loss
//           alone). All share the weights; evaluate shares the workspace with training.
#pragma once

#include <memory>
#include <optional>

#include "skein/ir/program.h"
#include "skein/model/llama/config.h"
#include "skein/optim/update.h"
#include "skein/passes/recompute.h"
#include "skein/runtime/device.h"
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

// The model of [model]; a vocab_size that it does not name is the tokenizer's. Throws Error{kUsage}
// where it cannot be.
LlamaConfig model_of(const Config& config, std::optional<int64_t> tokenizer_vocab_size);

// The device of [device]. Kernels' scratch depends on its threads: planning needs it as well.
std::unique_ptr<Device> training_device(const Config& config);

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

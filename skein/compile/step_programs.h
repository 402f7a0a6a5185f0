// From a configuration to the programs of a run: the list of passes, then plan_memory.
//
// Programs  forward, backward: one micro-batch each; "forward.<chunk>" where a stage has several
//           chunks; "backward.last" for the last micro-batch, where gradient sums over ranks are
//           started early; "forward.first", "backward.first" for the first of several, which stores
//           gradient sums that others add to; "backward.only" for a step with one alone, where
//           batches grow and other steps have more
//           pair, pair.first: the backward of a micro-batch and the forward of the next one, where
//           they run in pairs (passes/overlap/pair_programs.h)
//           update: one a step
//           round_weights: once a step, before the first micro-batch, where 8-bit weights are kept
//           evaluate: the loss of a micro-batch; evaluate_total: the sum over ranks
//           push.<level>, merge.<level>: one node of the tree of gradient sums each, where a rank
//           hosts several virtual ranks
//           All share the weights; evaluate shares the workspace with training.
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
#include "skein/passes/offload_activations.h"
#include "skein/passes/pass.h"
#include "skein/passes/recompute.h"
#include "skein/runtime/device.h"
#include "skein/schedule/pipeline_tasks.h"

namespace skein {

struct StepSpec {
  ParallelLayout layout;
  DecoderConfig model;
  int64_t micro_sequences = 1;
  int64_t sequence_length = 0;
  int64_t micro_batches = 1;  // of this rank, in a step; other data ranks may have more or fewer
  // With ZeRO 3 all data ranks gather a layer's weights at once, for each micro-batch: a rank that
  // has fewer runs so many more without a label, whose gradients are zero.
  int64_t empty_micro_batches = 0;
  bool also_one_micro_batch = false;  // in some steps of the run, where batches grow
  RecomputePolicy recompute = RecomputePolicy::kSelective;
  UpdateOptions update;
  bool offload_optimizer = false;
  std::optional<OffloadOptions> offload_activations;  // none: they stay on the device
  bool overlap = true;                                // collectives travel beside computation
  bool in_pairs = false;           // a micro-batch's forward beside the backward of the one before
  bool fp8 = false;                // in training, the layers' products read 8-bit operands
  bool fast_accumulation = false;  // of those of forward, on a GPU
  bool keep_fp8_weights = false;   // which are rounded once a step
  int64_t head_block_tokens = 0;   // DecoderOptions
  bool documents = true;           // DecoderOptions
  bool repeatable = true;          // DecoderOptions
  bool token_losses = false;       // evaluation keeps the loss of each token, token_loss

  // The schedule of a step: empty micro-batches are scheduled, too. Derived from the members above,
  // since a run whose batches grow changes micro_batches.
  PipelineShape pipeline() const;
};

// DecoderOptions::head_block_tokens of training. Every block of the head reads and writes the fp32
// gradient of its weights, 1 GB of a 7B model: a device with memory of its own takes as many tokens
// as fit 512 MiB of fp32 logits, 2,048 to 4,096; any other the decoder's choice, which stays in the
// host's caches.
int64_t head_block_tokens(const DecoderConfig& model, const Backend& backend);

// Whether [model], or the file or source that it names, gives the vocab_size.
bool gives_vocab_size(const Config& config);

// The model that [model] describes. Without a vocab_size of its own it gets the tokenizer's. Throws
// Error{kUsage} where the model is not valid, or its vocabulary is smaller than the tokenizer's.
DecoderConfig model_of(const Config& config, std::optional<int64_t> tokenizer_vocab_size);

// Throws Error{kUsage} where the tokens of a micro-batch cannot be split among the tensor ranks.
// step_spec asks it, after parallel_layout has asked whether the model can be split.
void check_token_split(const Config& config);

// The backend of device.kind. Throws Error{kUsage} in a build that cannot train on it.
const Backend& training_backend(const Config& config);
// The same to plan with: of "cuda" in every build.
const Backend& planned_backend(const Config& config);
// The kernels of planned_backend, without opening a device; enough for planning.
KernelTable training_kernels(const Config& config);
// The device of [device] for the worker `local_rank` of this node, of whose process `num_together`
// workers run programs at the same time. `compiler`: of a device that compiles; without it
// compiler_settings().
std::unique_ptr<Device> training_device(
    const Config& config, int local_rank = 0, int64_t num_together = 1,
    const std::optional<CompilerSettings>& compiler = std::nullopt);

StepSpec step_spec(const Config& config, const DecoderConfig& model,
                   const ParallelLayout& layout = {});

// Whether every data rank runs one micro-batch a step, for one virtual rank.
bool runs_one_micro_batch(const StepSpec& spec);

// The micro-batches of a virtual rank in a step, the same for all.
int64_t micro_batches_of_virtual_rank(const StepSpec& spec);

// Parameters that both the first and the last pipeline stage use, as tied embeddings; the first
// stage stores them.
std::set<std::string> shared_parameters(const StepSpec& spec);

// The graphs after all passes but plan_memory, for the stage of the spec's rank.
struct TrainingGraphs {
  Graph training;
  Graph evaluation;
};
// Verified after every pass, unless another spec of the same passes is.
enum class Checks { kAll, kNone };
TrainingGraphs training_graphs(const StepSpec& spec, const AfterPass& after = {},
                               Checks checks = Checks::kAll);

// The same in two parts, for plans of several stages: the passes up to take_stage, which give the
// ranks of all stages one result, and the others, for the stage of the spec's rank.
TrainingGraphs whole_graphs(const StepSpec& spec, const AfterPass& after = {},
                            Checks checks = Checks::kAll);
TrainingGraphs stage_graphs(TrainingGraphs whole, const StepSpec& spec, const AfterPass& after = {},
                            Checks checks = Checks::kAll);

// Every pass in order, also those that are off for this spec; `spec` must outlive them. The
// evaluation graph branches off after `model`. plan_training runs plan_memory afterwards.
struct StepPasses {
  std::vector<Pass> model, training, evaluation;
};
StepPasses step_passes(const StepSpec& spec);

// Once a step, before the first micro-batch, where there are weights to round.
inline constexpr const char* kRoundWeightsProgram = "round_weights";

// Checks: that every program finds in memory what the graphs say (passes/memory/check_memory.h).
ProgramSet plan_training(const TrainingGraphs& graphs, const StepSpec& spec,
                         const KernelTable& kernels, Checks checks = Checks::kAll);

// The name of the program `name` ("forward", "push.<level>", ...) of a chunk. `several`: the stage
// has more than one chunk.
std::string chunk_program(std::string_view name, int64_t chunk, bool several);

}  // namespace skein

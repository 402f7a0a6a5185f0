// `skein plan`: exact bytes of memory and communication, and predicted time, without allocating
// anything or having the machines. All of it is derived from the same programs that training runs.
//
// Step     forward and backward of every chunk of every pipeline stage, ordered by the schedule
//          (skein/schedule/simulate.h); then the update, on all stages at once. Asynchronous
//          collectives are hidden as far as the hardware overlaps: gradient sums behind the last
//          backward, gathers of weights behind the update. The last one started is always exposed.
// Turns    where fewer devices of a node compute at once than it has
//          (Hardware::concurrent_devices), those of one stage take turns; and if one node holds all
//          ranks, the stages together take at least their total work divided by the devices that
//          compute at once.
// Utilization  model FLOPs (training_flops_per_token: no recomputation, half of the attention
//              matrix) over the advertised peak of all ranks
// Errors   Error{kUsage}, the same as training: layouts that do not fit model, batch or ranks
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/config/config.h"
#include "skein/plan/evaluations.h"
#include "skein/plan/memory_fit.h"
#include "skein/plan/stage.h"
#include "skein/plan/whole_run.h"
#include "skein/schedule/simulate.h"

namespace skein {

struct StepPrediction {
  StepTimeline timeline;
  double step_seconds = 0;
  double update_seconds = 0;
  double exposed_seconds = 0;  // of the step: what it would save if exchange took no time
};

struct Plan {
  ParallelLayout layout;
  int64_t num_parameters = 0;
  Hardware hardware;
  std::vector<StagePlan> stages;
  int threads = 1;  // of a rank
  // Whose kernels' scratch was planned: "cuda", or of a CPU its kind (ops/simd/cpu_kind.h).
  std::string kernels;
  // Snapshots that a rank's copies of the state in memory take on its machine; they count in
  // `memory` where checkpoint.memory_every_steps asks for them, and are left out otherwise if there
  // is no room.
  int64_t copies = 0;
  bool needs_copies = false;
  double memory_margin = 0;  // PlanRequest::memory_margin
  std::vector<MemoryFit> memory;
  StepPrediction step;
  double tokens_per_second = 0;
  MatmulRate matmul;                // of a rank, in the run's precision
  double peak_utilization = 0;      // share of the advertised rate of all ranks
  double matmul_ceiling_share = 0;  // share of what large products reach on them
  RunTotals run;
  std::vector<PlannedEvaluation> evaluations;  // left empty by make_plan: they read data
  bool in_pairs = false;
  std::string idle_pairs, idle_zero;  // compile/parallel.h
  std::vector<std::string> notes;     // decoder_notes
  bool fp8_as_bf16 = false;           // nothing says how fast products of 8-bit operands are

  int64_t ranks() const { return layout.mesh.num_ranks(); }
  const StagePlan& largest() const;  // in bytes, host memory included
  const StagePlan& fullest() const;  // in bytes of the device
  const StagePlan& busiest() const;  // on the wire
};

struct PlanRequest {
  Config config;
  DecoderConfig model;
  Hardware hardware;
  KernelTable kernels;
  int64_t ranks = 1;
  int threads = 1;                  // of a rank on this machine: kernels' scratch depends on it
  std::vector<MemoryLimit> limits;  // of a node's host memory
  double memory_margin = 0;         // share of each memory that is to be left free
};

// A plan needs no tokenizer where the model gives its vocab_size: leaves out one that does not
// exist, and returns the sentence that says so ("": nothing was left out).
std::string leave_out_missing_tokenizer(Config& config);

// Where a tokenizer is configured, its vocabulary size is used as in training.
DecoderConfig planned_model(const Config& config);

// `asked`, or if that is 0 plan.ranks, or the number that [parallel] and [launch] give. Throws
// Error{kUsage} where none does.
int64_t ranks_to_plan(const Config& config, int64_t asked);

// What plan.hardware describes; `asked`, the path of a description, comes before it. Nothing:
// neither names one, and this machine is meant. Throws Error{kUsage} naming who did.
std::optional<Hardware> planned_hardware(const Config& config, const std::string& asked);

// Where device.kind is auto: sets it to what `hardware` names, and returns the sentence that says
// so (else "").
std::string take_device_kind(Config& config, const Hardware& hardware);

// A request for the configuration's model and kernels. `ranks`: as ranks_to_plan has it.
// No `hardware`: this machine, measured, with the memory that is free now.
PlanRequest plan_request(const Config& config, int64_t ranks,
                         const std::optional<Hardware>& hardware);

// The same for this machine without measuring it: only the plan's bytes are meaningful, not its
// times.
PlanRequest memory_request(const Config& config, const DecoderConfig& model, int64_t ranks);

Plan make_plan(const PlanRequest& request);

StepPrediction predict_step(const ParallelLayout& layout, const PipelineShape& shape,
                            const std::vector<StagePlan>& stages, const Hardware& hardware);

// Fills in what is derived from the stages: step, tokens_per_second, both shares, run.
void predict(Plan& plan, const PlanRequest& request, const StepSpec& spec);

// The plan of any one rank: what it holds, and what it sends in a step.
StagePlan plan_of_rank(const PlanRequest& request, int64_t rank);

// `of_rank`: adds this rank's bytes, and prints its collectives instead of those of the rank that
// sends most.
OrderedJson plan_to_json(const Plan& plan, const std::optional<StagePlan>& of_rank = std::nullopt);
std::string plan_to_text(const Plan& plan);

}  // namespace skein

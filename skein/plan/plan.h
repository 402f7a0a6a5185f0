// `skein plan`: exact bytes, what goes over the wire, and predicted time, before anything is
// allocated and without the machines. All of it is read off the very programs that training runs.
//
// Step     forward and backward of every chunk of every pipeline stage, put in order by the
//          schedule (skein/schedule/simulate.h); then the update, on all stages at once. What is
//          started and waited for later hides as far as the hardware overlaps: gradient sums
//          behind the last backward, gathers of weights behind the update; the last one started
//          never does.
// Turns    where fewer devices of a node compute at once than it has
//          (Hardware::concurrent_devices), those of one stage take turns, and all stages together
//          take at least their work divided by the devices that compute at once.
// Utilization  model FLOPs (training_flops_per_token: no recomputation, causal attention by half)
//          over the advertised peak of all ranks
// Errors   Error{kUsage} as training would give them: layouts that do not fit model, batch or ranks
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/json.h"
#include "skein/config/config.h"
#include "skein/plan/memory_fit.h"
#include "skein/plan/plan_run.h"
#include "skein/plan/plan_stage.h"
#include "skein/schedule/simulate.h"

namespace skein {

struct StepPrediction {
  StepTimeline timeline;
  double step_seconds = 0;
  double update_seconds = 0;
};

struct Plan {
  ParallelLayout layout;
  int64_t num_parameters = 0;
  Hardware hardware;
  std::vector<StagePlan> stages;
  int threads = 1;  // of a rank
  std::vector<MemoryFit> memory;
  StepPrediction step;
  double tokens_per_second = 0;
  MatmulRate matmul;                // of a rank, in the run's precision
  double peak_utilization = 0;      // of the advertised rate of all ranks
  double matmul_ceiling_share = 0;  // of what large products reach on them
  RunTotals run;

  int64_t ranks() const { return layout.mesh.num_ranks(); }
  const StagePlan& largest() const;  // in bytes, the host's among them
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
};

// A plan needs no tokenizer; where one is there, it gives the vocabulary that training would use.
DecoderConfig planned_model(const Config& config);

// `asked`, or where it is 0 what [parallel] and [launch] say. Throws Error{kUsage} where they do
// not.
int64_t ranks_to_plan(const Config& config, int64_t asked);

// The model and the kernels of the configuration. `ranks` 0: as [parallel] and [launch] say; no
// hardware: this machine, measured, with the memory that it has left now.
PlanRequest plan_request(const Config& config, int64_t ranks,
                         const std::optional<Hardware>& hardware);

// The same for this machine, with nothing measured: what it says of time is void.
PlanRequest memory_request(const Config& config, const DecoderConfig& model, int64_t ranks);

Plan make_plan(const PlanRequest& request);

StepPrediction predict_step(const ParallelLayout& layout, const PipelineShape& shape,
                            const std::vector<StagePlan>& stages, const Hardware& hardware);

// Fills what follows from the stages: step, tokens_per_second, both shares, run.
void predict(Plan& plan, const PlanRequest& request, const StepSpec& spec);

// What one rank holds and sends in a step, whichever it is.
StagePlan plan_of_rank(const PlanRequest& request, int64_t rank);

// `of_rank`: its bytes, too, and its collectives instead of those of the rank that sends most.
OrderedJson plan_to_json(const Plan& plan, const std::optional<StagePlan>& of_rank = std::nullopt);
std::string plan_to_text(const Plan& plan);

}  // namespace skein

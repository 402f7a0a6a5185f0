#include "skein/train/start/prepared_run.h"

#include <omp.h>

#include <set>
#include <utility>

#include "skein/backends/backend.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/checkpoint/save/checkpoint_writer.h"
#include "skein/compile/whole_step.h"
#include "skein/config/length.h"
#include "skein/config/node_range.h"
#include "skein/config/notes.h"
#include "skein/config/run/skips.h"
#include "skein/model/decoder.h"
#include "skein/model/placement.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/passes/use_fp8.h"
#include "skein/tensor/fp8.h"
#include "skein/train/start/consensus.h"
#include "skein/train/start/core_share.h"
#include "skein/train/start/device_ceiling.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/same_arithmetic.h"

namespace skein {
namespace {

// What is derived, and what can hardly be meant; nothing where no step follows.
void tell_settings(const PreparedRun& run) {
  const int64_t step = run.beginning.step();
  if (step >= run.config.run.steps || run.only_validates()) return;
  // A run that continues says instead what has changed.
  if (run.beginning.checkpoint() == nullptr) {
    for (const std::string& note : run_length_notes(run.config)) log::info("{}", note);
  }
  for (const std::string& note : schedule_warnings(run.config)) log::warn("{}", note);
  for (const std::string& note :
       settings_without_effect(run.config, step, heartbeat::has_supervisor())) {
    log::warn("{}", note);
  }
}

void tell_layout(const PreparedRun& run, const ParallelLayout& layout, int64_t stored_width) {
  if (stored_width > 0 && layout.reduction_width != stored_width) {
    log::warn(
        "the reduction width changes from {} to {}: the data stay the same, but gradients are "
        "summed in another order from here, and losses may differ in their last bits",
        stored_width, layout.reduction_width);
  }
  const int size = run.world.size();
  if (size > 1) {
    const std::string order =
        run.config.parallel.sums == "canonical"
            ? fmt::format(", gradients summed in the order of {} (parallel.reduction_width)",
                          counted(layout.reduction_width, "virtual rank"))
            : "";
    log::info("{} ranks: {}, ZeRO {}{}", size, layout.mesh.to_string(), layout.zero, order);
  }
  if (const std::string note = unequal_shares(layout); !note.empty()) log::info("{}", note);
  for (const std::string& note :
       decoder_notes(run.inputs.model(), layout.mesh, run.config.data.sequence_length)) {
    log::info("{}", note);
  }
  // ZeRO 3 splits weights and moments all the same.
  const std::string idle = idle_zero(run.config, layout);
  if (!idle.empty()) layout.zero == 3 ? log::info("{}", idle) : log::warn("{}", idle);
  if (const std::string note = idle_pairs(run.config, layout); !note.empty()) {
    log::warn("{}", note);
  }
}

ParallelLayout lay_out(const PreparedRun& run) {
  if (run.is_first_launch()) tell_settings(run);
  const CheckpointReader* checkpoint = run.beginning.checkpoint();
  const int64_t stored = checkpoint ? checkpoint->state().reduction_width : 0;
  ParallelLayout layout =
      parallel_layout(run.config, run.inputs.model(), run.world.size(), run.world.rank(), stored);
  if (run.is_first()) tell_layout(run, layout, stored);
  return layout;
}

// The workers of a process run the same programs, the same number of times.
void check_together(const PreparedRun& run, int64_t workers) {
  if (workers == 1) return;
  const int64_t of_stage = run.layout.mesh.num_ranks() / run.layout.mesh.size("pp");
  if (of_stage % workers != 0) {
    fail(ErrorCode::kUsage,
         "launch.workers_per_process is {}, and a pipeline stage has {} ranks: the workers of a "
         "process are of one stage, expected a number that divides {}",
         workers, of_stage, of_stage);
  }
  if (const std::string note = unequal_shares(run.layout); !note.empty()) {
    fail(ErrorCode::kUsage,
         "{}: workers of one process run the same micro-batches; expected "
         "launch.workers_per_process = 1, or a reduction_width that the data ranks divide",
         note);
  }
}

std::unique_ptr<Device> open_device(const PreparedRun& run) {
  const Backend& backend = training_backend(run.config);
  if (run.world.size() > 1 && backend.expect_several_ranks != nullptr) {
    backend.expect_several_ranks();
  }
  const int local_rank = run.launch.local_rank;
  const int64_t together = workers_per_process(run.config);
  check_together(run, together);
  std::unique_ptr<Device> device = training_device(run.config, local_rank, together);
  if (const std::string note = denied_tiles();
      backend.kind == "cpu" && local_rank == 0 && !note.empty()) {
    log::warn("kernels for {}: {}", cpu_kind(), note);
  }
  check_same_arithmetic(run.world, *device);
  return device;
}

// The lanes of the run's checkpoint; 0: there is none, so that they are those of a run that begins.
int64_t stored_lanes(const PreparedRun& run) {
  const CheckpointReader* checkpoint = run.beginning.checkpoint();
  if (checkpoint == nullptr) return 0;
  const int64_t stored = num_lanes_in(checkpoint->state().lanes), asked = run.config.data.lanes;
  if (asked > 0 && stored > 0 && asked != stored) {
    fail(ErrorCode::kUsage,
         "data.lanes is {}, and {} was trained with {}: lanes are the order of the data and stay "
         "as they are; expected {}, or 0; for other lanes begin a new run, whose model.init_from "
         "is that checkpoint",
         asked, checkpoint->path().string(), stored, stored);
  }
  return stored;
}

SkippedBatches open_corpora(PreparedRun& run) {
  run.inputs.open_corpora(rows_of(run.layout), stored_lanes(run));
  run.beginning.accept(run.inputs);
  return skipped_by(run.config, run.beginning.checkpoint());
}

// A restart after a failure does not take the time to measure again.
double known_ceiling(const PreparedRun& run) {
  const double known =
      sum_over_ranks(run.world, run.log ? run.log->ceiling_before(run.world.size()) : 0.0);
  return known > 0 ? known : measure_ceiling(run);
}

RankPrograms plan_programs(const PreparedRun& run) {
  const StepSpec& spec = run.spec;
  const TrainingGraphs graphs = training_graphs(spec);
  RankPrograms programs;
  programs.set = plan_training(graphs, spec, run.device->kernels());
  if (run.device->compiles()) join_step(programs.set, spec);
  const int64_t rounding = spec.keep_fp8_weights ? num_rounding_products(graphs.training) : 0;
  if (rounding > 0 && run.is_first()) {
    log::info(
        "memory.keep_fp8_weights: {} products of the layers round their weights themselves: their "
        "sizes on a rank are no multiples of {}",
        rounding, kFp8Multiple);
  }
  const bool is_first_stage = run.layout.stage() == 0;
  programs.tensors =
      state_tensors(graphs.training, spec.model, run.layout.rank,
                    is_first_stage ? std::set<std::string>{} : shared_parameters(spec));
  check_memory(run.world, *run.device, run.config, spec, programs.set,
               CheckpointWriter::snapshot_bytes(specs_of(programs.tensors)));
  return programs;
}

}  // namespace

PreparedRun::PreparedRun(const Config& configured, Communicator& ranks, RankLaunch launched)
    : config(configured),
      world(ranks),
      launch(std::move(launched)),
      locks(is_first() ? std::optional(lock_run(config)) : std::nullopt),
      log(is_first() ? std::make_unique<RunLog>(config, launch.record) : nullptr),
      inputs(config, is_first()),
      beginning(config, world, checkpoint_lock(), log.get(),
                launch.replicas ? &*launch.replicas : nullptr),
      layout(lay_out(*this)),
      device(open_device(*this)),
      groups(config, layout, world, *device),
      skipped(open_corpora(*this)),
      spec(step_spec(config, inputs.model(), layout)),
      ceiling_flops(known_ceiling(*this)),  // before the arenas take all memory
      programs(plan_programs(*this)) {}

// All ranks measure at the same time, since ranks of a node slow each other down in a step too. A
// thread of a CPU is measured by its own time, of which it has less where workers share cores.
double measure_ceiling(const PreparedRun& run) {
  wait_for_all(run.world, "the ceiling is measured");
  const DType dtype = compute_dtype(run.spec.update.precision);
  const double measured = measure_device_ceiling_flops(*run.device, dtype);
  const double share = run.device->own_memory() ? 1 : core_share(run.world, omp_get_max_threads());
  return sum_over_ranks(run.world, measured * share);
}

}  // namespace skein

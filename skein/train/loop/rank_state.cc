#include "skein/train/loop/rank_state.h"

#include <omp.h>

#include <cmath>

#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/compile/program_runs.h"
#include "skein/model/decoder.h"
#include "skein/ops/optimizer.h"
#include "skein/plan/stage.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/start/consensus.h"
#include "skein/train/start/disk_check.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/run_algorithms.h"

namespace skein {

RankState::RankState(PreparedRun& run)
    : run_(run), runner_(*run.device, run.programs.set, run.spec, &run.groups.by_axis) {
  tell_arenas();
  // Longer than other collectives wait: one rank may compile what another one finds in its cache.
  if (run.device->compiles()) wait_for_all(run.world, "every rank has compiled its programs");
  saver_.emplace(run);
  if (!run.only_validates()) warn_of_lack_of_disk();
  if (run.config.run.check_state && run.world.size() > 1) begin_to_check();
  if (run.beginning.keeps_copies() && has_memory_for_copies()) {
    copies_ = std::make_unique<MemorySaver>(run);
  }
  tell_scale();
  algorithms_ = agree_on_algorithms();
}

// Communicators go first: freeing GPU memory waits for kernels in flight, and a collective with a
// lost peer would never end.
RankState::~RankState() { run_.groups.by_axis.clear(); }

// For a debugger, and to plant faults.
void RankState::tell_arenas() const {
  OrderedJson arenas = OrderedJson::object();
  for (int i = 0; i < kNumArenas; ++i) {
    const auto index = static_cast<size_t>(i);
    const void* begin = runner_.executor().arenas().at(index);
    if (begin == nullptr) continue;
    arenas[std::string(arena_name(static_cast<Arena>(i)))] = {
        {"address", reinterpret_cast<uintptr_t>(begin)},
        {"bytes", run_.programs.set.arena_bytes.at(index)}};
  }
  log::debug_to_file(fmt::format("arenas {}", json_text(arenas)));
}

void RankState::warn_of_lack_of_disk() const {
  double bytes = 0;
  for (const StateTensor& tensor : run_.programs.tensors) {
    bytes += static_cast<double>(tensor.spec.stored_bytes());
  }
  const auto of_all = static_cast<int64_t>(sum_over_ranks(run_.world, bytes));
  const std::string warning = run_.is_first() ? lack_of_disk(run_.config, of_all) : "";
  if (!warning.empty()) log::warn("{}", warning);
}

void RankState::begin_to_check() {
  const Device& device = *run_.device;
  if (!device.own_memory()) {
    check_ = std::make_unique<StateCheck>(
        run_.world, run_.layout.mesh,
        checked_tensors(runner_.executor(), run_.programs.set, run_.programs.tensors));
    // As late as can be: what changes while ranks wait for each other is found as well.
    runner_.executor().run_before(
        "update", [](const OpDef& op) { return optimizer_of(op) != nullptr; },
        [this] { check_->expect_unchanged(); });
  } else if (run_.is_first()) {
    log::info("the state is not checked for silent corruption: {} has memory of its own",
              device.kind());
  }
}

bool RankState::has_memory_for_copies() const {
  const int64_t snapshot_bytes = saver_->snapshot_bytes();
  const auto lack =
      lacks_memory_for(run_.world, *run_.device, run_.config, run_.spec, run_.programs.set,
                       snapshot_bytes, run_.launch.replicas->more_bytes(snapshot_bytes));
  if (!lack) return true;
  if (const int64_t every = run_.config.checkpoint.memory_every_steps; every > 0) {
    fail(ErrorCode::kNoSpace,
         "checkpoint.memory_every_steps is {}, but there is no memory for copies of the state: {}; "
         "set it to 0 or -1, or train on more machines",
         every, *lack);
  }
  if (run_.is_first()) log::warn("no copies of the state are kept in memory: {}", *lack);
  return false;
}

void RankState::tell_scale() const {
  const DecoderConfig& model = run_.inputs.model();
  const Device& device = *run_.device;
  const std::string compiled = device.compiled();
  if (!compiled.empty() && run_.world.rank() % device.ranks_together() == 0) {
    run_.is_first() ? log::info("{}", compiled) : log::info_to_file(compiled);
  }
  RunLog::Scale scale;
  scale.num_ranks = run_.world.size();
  scale.arithmetic = device.arithmetic();
  if (!device.own_memory()) scale.threads = omp_get_max_threads();
  for (const auto& [name, runs] : program_runs(run_.spec, run_.programs.set)) {
    scale.calls_per_step += runs * std::ssize(run_.programs.set.program(name).instructions);
  }
  scale.num_parameters = num_parameters(model);
  scale.flops_per_token = training_flops_per_token(model, run_.config.data.sequence_length);
  scale.guess_loss = std::log(static_cast<double>(model.vocab_size));
  scale.ceiling_flops = run_.ceiling_flops;
  if (const auto peak = device.peak_flops(compute_dtype(run_.spec.update.precision))) {
    scale.peak_flops = *peak * run_.world.size();
  }
  // Only a single rank on a CPU may measure the ceiling again during training: with several ranks
  // it is a collective, which rank 0's log cannot start alone, and a GPU has no free memory left.
  if (run_.world.size() == 1 && !device.own_memory()) {
    scale.measure_ceiling = [&run = run_] { return measure_ceiling(run); };
  }
  scale.arena_bytes = run_.programs.set.arena_bytes;
  scale.snapshot_bytes = saver_->snapshot_bytes();
  scale.loader_bytes = loader_bytes(run_.spec);
  if (run_.log) {
    run_.log->set_scale(scale);
  } else {
    const OrderedJson allocated =
        allocated_to_json(scale.arena_bytes, scale.snapshot_bytes, scale.loader_bytes);
    log::info_to_file(fmt::format("allocated {}", json_text(allocated)));
  }
}

Json RankState::agree_on_algorithms() {
  AlgorithmChoices kept;
  if (const CheckpointReader* checkpoint = run_.beginning.checkpoint()) {
    kept = algorithms_from_json(checkpoint->state().algorithms, checkpoint->path().string());
  }
  return algorithms_to_json(skein::agree_on_algorithms(
      run_.world, run_.layout.mesh, algorithm_kernels(runner_.executor()), kept));
}

void RankState::load() {
  run_.beginning.load(run_.inputs.model(), run_.programs.tensors, runner_.executor());
}

void RankState::count_from(int64_t step) {
  if (copies_) copies_->go_on_from(step);
  saver_->go_on_from(run_.beginning.stored_step(), run_.beginning.start().parent);
}

void RankState::vote(int64_t step, std::span<const double> results) {
  if (check_) in_step(step, *run_.device, [&] { check_->vote(results); });
}

void RankState::expect_unchanged(int64_t step) {
  if (check_) in_step(step, *run_.device, [&] { check_->expect_unchanged(); });
}

double RankState::take_check_seconds() { return check_ ? check_->take_seconds() : 0; }

}  // namespace skein

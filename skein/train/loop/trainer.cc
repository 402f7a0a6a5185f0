#include "skein/train/loop/trainer.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/compile/program_runs.h"
#include "skein/config/length.h"
#include "skein/config/notes.h"
#include "skein/config/run/skips.h"
#include "skein/model/decoder.h"
#include "skein/model/placement.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/passes/use_fp8.h"
#include "skein/plan/stage.h"
#include "skein/tensor/fp8.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/start/consensus.h"
#include "skein/train/start/core_share.h"
#include "skein/train/start/device_ceiling.h"
#include "skein/train/start/disk_check.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/run_algorithms.h"
#include "skein/train/start/run_folder.h"
#include "skein/train/start/same_arithmetic.h"

namespace skein {
Trainer::Trainer(const Config& config, Communicator& world, std::string start_id, int local_rank,
                 std::optional<ReplicaPlace> replicas, const Launched& launched)
    : config_(config),
      world_(world),
      start_id_(std::move(start_id)),
      local_rank_(local_rank),
      signals_({.tells = is_first() && !heartbeat::has_supervisor(),
                .ends = !heartbeat::has_supervisor()}),
      place_(std::move(replicas)),
      schedule_(learning_rate_schedule(config.optimizer)),
      ramp_(batch_ramp(config)),
      best_(config.checkpoint.best_by, config.run.stop_after_worse),
      only_validates_(launched.only_validates) {
  if (is_first()) {
    locks_.emplace(lock_run(config_));
    log_.emplace(config_, launched);
  }
  inputs_ = std::make_unique<RunInputs>(config_, is_first());
  beginning_ =
      std::make_unique<Beginning>(config_, world_, locks_ ? &locks_->checkpoints() : nullptr,
                                  log_ ? &*log_ : nullptr, place_ ? &*place_ : nullptr);
  if (is_first() && launched.generation == 1) tell_settings();
  lay_out();
  inputs_->open_corpora(rows_of(layout_), stored_lanes());
  beginning_->accept(*inputs_);
  skipped_ = skipped_by(config_, beginning_->checkpoint());
  allocate();
  agree_on_algorithms();
  if (beginning_->step() < config_.run.steps) {
    agree_on_validation(is_first() && launched.generation == 1);
  }
  begin();
  wait_for_all(world_, "every rank is ready to train");
}

// Communicators go first: freeing GPU memory waits for kernels in flight, and a collective with a
// lost peer would never end.
Trainer::~Trainer() { communicators_.clear(); }

// What is derived, and what can hardly be meant; nothing where no step follows.
void Trainer::tell_settings() const {
  if (beginning_->step() >= config_.run.steps || only_validates_) return;
  // A run that continues says instead what has changed.
  if (beginning_->checkpoint() == nullptr) {
    for (const std::string& note : run_length_notes(config_)) log::info("{}", note);
  }
  for (const std::string& note : schedule_warnings(config_)) log::warn("{}", note);
  for (const std::string& note :
       settings_without_effect(config_, beginning_->step(), heartbeat::has_supervisor())) {
    log::warn("{}", note);
  }
}

void Trainer::lay_out() {
  const CheckpointReader* checkpoint = beginning_->checkpoint();
  const int64_t stored = checkpoint ? checkpoint->state().reduction_width : 0;
  layout_ = parallel_layout(config_, inputs_->model(), world_.size(), world_.rank(), stored);
  if (is_first() && stored > 0 && layout_.reduction_width != stored) {
    log::warn(
        "the reduction width changes from {} to {}: the data stay the same, but gradients are "
        "summed in another order from here, and losses may differ in their last bits",
        stored, layout_.reduction_width);
  }
  if (is_first() && world_.size() > 1) {
    log::info("{} ranks: {}, ZeRO {}", world_.size(), layout_.mesh.to_string(), layout_.zero);
  }
  if (const std::string told = unequal_shares(layout_); is_first() && !told.empty()) {
    log::info("{}", told);
  }
  if (is_first()) {
    const int64_t length = config_.data.sequence_length;
    for (const std::string& told : decoder_notes(inputs_->model(), layout_.mesh, length)) {
      log::info("{}", told);
    }
  }
  for (const std::string& told : {idle_zero(config_, layout_), idle_pairs(config_, layout_)}) {
    if (is_first() && !told.empty()) log::warn("{}", told);
  }
  const Backend& backend = training_backend(config_);
  if (world_.size() > 1 && backend.expect_several_ranks != nullptr) backend.expect_several_ranks();
  device_ = training_device(config_, local_rank_);
  if (const std::string told = denied_tiles();
      backend.kind == "cpu" && local_rank_ == 0 && !told.empty()) {
    log::warn("kernels for {}: {}", cpu_kind(), told);
  }
  check_same_arithmetic(world_, *device_);
  if (world_.size() > 1 && backend.make_world != nullptr) {
    DeviceWorldOptions options;
    options.stream = device_->stream();
    options.timeout_s = config_.launch.collective_timeout_s;
    options.sums = config_.parallel.sums == "fast" ? Sums::kFast : Sums::kCanonical;
    device_world_ = backend.make_world(world_, options);
  }
  communicators_ =
      split_by_axis(device_world_ ? *device_world_ : world_, layout_.mesh, layout_.reduction_width);
}

void Trainer::allocate() {
  const StepSpec spec = step_spec(config_, inputs_->model(), layout_);
  const DType dtype = compute_dtype(spec.update.precision);
  ceiling_flops_ = ceiling(dtype);  // before the arenas take it all
  const TrainingGraphs graphs = training_graphs(spec);
  programs_ = plan_training(graphs, spec, device_->kernels());
  const int64_t rounding = spec.keep_fp8_weights ? num_rounding_products(graphs.training) : 0;
  if (rounding > 0 && is_first()) {
    log::info(
        "memory.keep_fp8_weights: {} products of the layers round their weights themselves: their "
        "sizes on a rank are no multiples of {}",
        rounding, kFp8Multiple);
  }
  const bool is_first_stage = layout_.stage() == 0;
  std::vector<StateTensor> state =
      state_tensors(graphs.training, spec.model, layout_.rank,
                    is_first_stage ? std::set<std::string>{} : shared_parameters(spec));
  check_memory(world_, *device_, config_, spec, programs_, Saver::snapshot_bytes(state));
  runner_ = std::make_unique<StepRunner>(*device_, programs_, spec, &communicators_);
  tell_arenas();
  saver_ = std::make_unique<Saver>(config_, world_, *device_, start_id_, std::move(state),
                                   log_ ? &*log_ : nullptr, locks_ ? &*locks_ : nullptr);
  if (!only_validates_) warn_of_lack_of_disk();
  if (config_.run.check_state && world_.size() > 1) {
    if (!device_->own_memory()) {
      check_ = std::make_unique<StateCheck>(
          world_, layout_.mesh, checked_tensors(runner_->executor(), programs_, saver_->tensors()));
      // As late as can be: what changes while ranks wait for each other is found as well.
      runner_->executor().run_before("update", "adamw", [this] { check_->expect_unchanged(); });
    } else if (is_first()) {
      log::info("the state is not checked for silent corruption: {} has memory of its own",
                device_->kind());
    }
  }

  if (beginning_->keeps_copies() && has_memory_for_copies(spec)) {
    copies_ = std::make_unique<MemorySaver>(config_, world_, *device_, start_id_, saver_->tensors(),
                                            *place_, beginning_->next_copy());
  }

  RunLog::Scale scale;
  scale.num_ranks = world_.size();
  scale.arithmetic = device_->arithmetic();
  if (!device_->own_memory()) scale.threads = omp_get_max_threads();
  for (const auto& [name, runs] : program_runs(spec, programs_)) {
    scale.calls_per_step += runs * std::ssize(programs_.program(name).instructions);
  }
  scale.num_parameters = num_parameters(inputs_->model());
  scale.flops_per_token = training_flops_per_token(inputs_->model(), config_.data.sequence_length);
  scale.ceiling_flops = ceiling_flops_;
  if (const auto peak = device_->peak_flops(dtype)) scale.peak_flops = *peak * world_.size();
  // Only a single rank on a CPU may measure the ceiling again during training: with several ranks
  // it is a collective, which rank 0's log cannot start alone, and a GPU has no free memory left.
  if (world_.size() == 1 && !device_->own_memory())
    scale.measure_ceiling = [this, dtype] { return measure_ceiling(dtype); };
  scale.arena_bytes = programs_.arena_bytes;
  scale.snapshot_bytes = saver_->snapshot_bytes();
  scale.loader_bytes = loader_bytes(spec);
  if (log_) {
    log_->set_scale(scale);
  } else {
    const OrderedJson allocated =
        allocated_to_json(scale.arena_bytes, scale.snapshot_bytes, scale.loader_bytes);
    log::info_to_file(fmt::format("allocated {}", json_text(allocated)));
  }
}

// For a debugger, and for whoever plants faults.
void Trainer::tell_arenas() const {
  OrderedJson arenas = OrderedJson::object();
  for (int i = 0; i < kNumArenas; ++i) {
    const void* begin = runner_->executor().arenas().at(static_cast<size_t>(i));
    if (begin == nullptr) continue;
    arenas[std::string(arena_name(static_cast<Arena>(i)))] = {
        {"address", reinterpret_cast<uintptr_t>(begin)},
        {"bytes", programs_.arena_bytes.at(static_cast<size_t>(i))}};
  }
  log::debug_to_file(fmt::format("arenas {}", json_text(arenas)));
}

void Trainer::warn_of_lack_of_disk() {
  double bytes = 0;
  for (const StateTensor& tensor : saver_->tensors()) {
    bytes += static_cast<double>(tensor.spec.stored_bytes());
  }
  const auto of_all = static_cast<int64_t>(sum_over_ranks(world_, bytes));
  const std::string told = is_first() ? lack_of_disk(config_, of_all) : "";
  if (!told.empty()) log::warn("{}", told);
}

bool Trainer::has_memory_for_copies(const StepSpec& spec) {
  const auto lack =
      lacks_memory_for(world_, *device_, config_, spec, programs_, saver_->snapshot_bytes(),
                       place_->more_bytes(saver_->snapshot_bytes()));
  if (!lack) return true;
  if (config_.checkpoint.memory_every_steps > 0) {
    fail(ErrorCode::kNoSpace,
         "checkpoint.memory_every_steps is {}, but there is no memory for copies of the state: {}; "
         "set it to 0 or -1, or train on more machines",
         config_.checkpoint.memory_every_steps, *lack);
  }
  if (is_first()) log::warn("no copies of the state are kept in memory: {}", *lack);
  return false;
}

void Trainer::agree_on_algorithms() {
  AlgorithmChoices kept;
  if (const CheckpointReader* checkpoint = beginning_->checkpoint()) {
    kept = algorithms_from_json(checkpoint->state().algorithms, checkpoint->path().string());
  }
  algorithms_ = algorithms_to_json(skein::agree_on_algorithms(
      world_, layout_.mesh, algorithm_kernels(runner_->executor()), kept));
}

// A restart after a failure does not take the time to measure again.
double Trainer::ceiling(DType dtype) {
  const double known = sum_over_ranks(world_, log_ ? log_->ceiling_before(world_.size()) : 0.0);
  return known > 0 ? known : measure_ceiling(dtype);
}

// All ranks measure at the same time, since ranks of a node slow each other down in a step too. A
// thread of a CPU is measured by its own time, of which it has less where workers share cores.
double Trainer::measure_ceiling(DType dtype) {
  wait_for_all(world_, "the ceiling is measured");
  const double measured = measure_device_ceiling_flops(*device_, dtype);
  const double share = device_->own_memory() ? 1 : core_share(world_, omp_get_max_threads());
  return sum_over_ranks(world_, measured * share);
}

// All checks have passed: from here on the state is loaded and the run folder is written.
void Trainer::begin() {
  if (const CheckpointReader* checkpoint = beginning_->checkpoint()) {
    roll_backs_ = checkpoint->state().roll_backs;
  }
  restore();
  if (log_) {
    // A start that has nothing to do leaves the files as the run that was trained wrote them.
    if (step_ < config_.run.steps && !has_nothing_to_do() && !only_validates_) {
      manifest_text({.state = described_state()});  // what cannot be saved, no step is trained for
      write_run_folder(config_, inputs_->model(), inputs_->tokenizer());
    }
    if (!has_nothing_to_do() || !log_->has_stopped()) {
      log_->start(step_, beginning_->from(), beginning_->said());
      if (!heartbeat::has_supervisor()) signals_.record_in(config_.run.dir);
    }
  }
  weights_ = beginning_->weights();
  beginning_->forget();
}

// Fills in everything that a checkpoint holds, or the initial state.
void Trainer::restore() {
  beginning_->load(inputs_->model(), saver_->tensors(), runner_->executor());
  begun_ = step_ = tokens_ = 0;
  spikes_ = {};
  best_.go_on_from(Json());
  std::vector<MixtureState> states;
  int64_t rows_taken = 0;
  if (const CheckpointReader* checkpoint = beginning_->checkpoint()) {
    const TrainingState& state = checkpoint->state();
    begun_ = step_ = state.step;
    tokens_ = state.tokens_seen;
    const std::string path = checkpoint->path().string();
    states = lanes_from_json(state.lanes, inputs_->training(), path);
    rows_taken = rows_taken_in(state.lanes, skipped_.batch_of(step_), path);
    spikes_ = spikes_after(state);
    best_.go_on_from(state.validation);
  }
  heartbeat::reach_step(step_);
  signals_.note_step(step_);
  if (copies_) copies_->go_on_from(step_);
  saver_->go_on_from(beginning_->stored_step(), beginning_->start().parent);
  note_saves();
  wait_for_all(world_, "every rank has its state");
  if (check_) in_step(step_, *device_, [&] { check_->vote(); });
  LoaderOptions options;
  options.share = rows_of(layout_);
  options.ramp = ramp_;
  options.first_step = step_ + 1;
  options.skipped = skipped_;
  options.rows_taken = rows_taken;
  options.exchange = [this](std::span<const MixtureState> own, std::span<const int64_t> lanes) {
    return exchange_lanes(own, lanes);
  };
  loader_.reset();  // frees its memory before the next one takes as much
  loader_ = std::make_unique<Loader>(inputs_->training(), options, states);
}

}  // namespace skein

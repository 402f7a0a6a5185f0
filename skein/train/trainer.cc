#include "skein/train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include "skein/base/clock.h"
#include "skein/base/heartbeat.h"
#include "skein/base/log.h"
#include "skein/base/version.h"
#include "skein/config/run_skips.h"
#include "skein/model/decoder.h"
#include "skein/plan/plan_stage.h"
#include "skein/record/op_trace.h"
#include "skein/train/consensus.h"
#include "skein/train/device_ceiling.h"
#include "skein/train/memory_check.h"
#include "skein/train/run_algorithms.h"
#include "skein/train/run_folder.h"
#include "skein/train/same_arithmetic.h"

namespace skein {
namespace {

void refuse_what_is_not_there_yet(const Config& config) {
  if (config.checkpoint.dir.starts_with("s3://")) {
    fail(ErrorCode::kUsage, "checkpoint.dir is '{}': S3 is not built yet, name a folder",
         config.checkpoint.dir);
  }
}

Stop asked_for(const StopSignals& signals) {
  const int signal = signals.requested();
  return signal == 0 ? Stop::kNo : signal == SIGUSR2 ? Stop::kRegroup : Stop::kYes;
}

// Adds the step to an error. An error that the device reports asynchronously belongs to an earlier
// op, so it is replaced by the device's own account of where it happened.
template <typename Work>
auto in_step(int64_t step, const Device& device, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPeerLost) throw;
    const std::string behind = device.failure();
    if (!behind.empty()) fail(ErrorCode::kInternal, "{}", behind);
    fail(error.code(), "step {}: {}", step, error.what());
  }
}

}  // namespace

Trainer::Trainer(const Config& config, Communicator& world, std::string start_id, int local_rank,
                 const std::string& replicas, const Launched& launched)
    : config_(config),
      world_(world),
      start_id_(std::move(start_id)),
      local_rank_(local_rank),
      schedule_(learning_rate_schedule(config.optimizer)) {
  refuse_what_is_not_there_yet(config_);
  if (is_first()) {
    locks_.emplace(lock_run(config_));
    log_.emplace(config_, launched);
  }
  inputs_ = std::make_unique<RunInputs>(config_, is_first());
  if (!replicas.empty()) place_ = ReplicaPlace::parse(replicas);
  beginning_ =
      std::make_unique<Beginning>(config_, world_, locks_ ? &locks_->checkpoints() : nullptr,
                                  log_ ? &*log_ : nullptr, place_ ? &*place_ : nullptr);
  lay_out();
  inputs_->open_corpora(lanes());
  beginning_->accept(*inputs_);
  skipped_ = skipped_by(config_, beginning_->checkpoint());
  allocate();
  agree_on_algorithms();
  begin();
  wait_for_all(world_, "every rank is ready to train");
}

// Communicators go first: freeing GPU memory waits for kernels in flight, and a collective with a
// lost peer would never end.
Trainer::~Trainer() { communicators_.clear(); }

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
  if (const std::string told = unequal_shares(layout_); is_first() && !told.empty()) {
    log::info("{}", told);
  }
  const Backend& backend = training_backend(config_);
  if (world_.size() > 1 && backend.expect_several_ranks != nullptr) backend.expect_several_ranks();
  device_ = training_device(config_, local_rank_);
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

// The lanes of the global batch that this rank reads.
LoaderOptions Trainer::lanes() const {
  const LaneRange lanes = lanes_of(layout_, config_.batch.global_sequences);
  LoaderOptions options;
  options.first_lane = lanes.first;
  options.end_lane = lanes.first + lanes.count;
  return options;
}

void Trainer::allocate() {
  const StepSpec spec = step_spec(config_, inputs_->model(), layout_);
  const DType dtype = compute_dtype(spec.update.precision);
  const double ceiling_flops = ceiling(dtype);  // before the arenas take it all
  const TrainingGraphs graphs = training_graphs(spec);
  programs_ = plan_training(graphs, spec, device_->kernels());
  const bool is_first_stage = layout_.stage() == 0;
  std::vector<StateTensor> state =
      state_tensors(graphs.training, layout_.rank,
                    is_first_stage ? std::set<std::string>{} : shared_parameters(spec));
  check_memory(world_, *device_, config_, spec, programs_, Saver::snapshot_bytes(state));
  runner_ = std::make_unique<StepRunner>(*device_, programs_, spec, &communicators_);
  tell_arenas();
  saver_ = std::make_unique<Saver>(config_, world_, *device_, start_id_, std::move(state),
                                   log_ ? &*log_ : nullptr);
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
  scale.num_parameters = num_parameters(inputs_->model());
  scale.flops_per_token = training_flops_per_token(inputs_->model(), config_.data.sequence_length);
  scale.ceiling_flops = ceiling_flops;
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
    log::info("allocated {}", allocated.dump());
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
  const std::string text = fmt::format("arenas {}", arenas.dump());
  is_first() ? log::info_to_file(text) : log::info("{}", text);
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

// All ranks measure at the same time, since ranks of a node slow each other down in a step too.
double Trainer::measure_ceiling(DType dtype) {
  wait_for_all(world_, "the ceiling is measured");
  return sum_over_ranks(world_, measure_device_ceiling_flops(*device_, dtype));
}

// All checks have passed: from here on the state is loaded and the run folder is written.
void Trainer::begin() {
  if (const CheckpointReader* checkpoint = beginning_->checkpoint()) {
    roll_backs_ = checkpoint->state().roll_backs;
  }
  restore();
  if (log_) {
    // A start that has nothing to do leaves the files as the run that was trained wrote them.
    if (step_ < config_.run.steps) {
      write_run_folder(config_, inputs_->model(), inputs_->tokenizer());
    }
    log_->start(step_, beginning_->from(), beginning_->said());
  }
  beginning_->forget();
}

// Fills in everything that a checkpoint holds, or the initial state.
void Trainer::restore() {
  beginning_->load(inputs_->model(), saver_->tensors(), runner_->executor());
  begun_ = step_ = tokens_ = 0;
  spikes_ = {};
  std::vector<LaneState> states;
  if (const CheckpointReader* checkpoint = beginning_->checkpoint()) {
    const TrainingState& state = checkpoint->state();
    begun_ = step_ = state.step;
    tokens_ = state.tokens_seen;
    states = lanes_from_json(state.lanes, inputs_->training(), checkpoint->path().string());
    spikes_ = spikes_after(state);
  }
  heartbeat::reach_step(step_);
  if (copies_) copies_->go_on_from(step_);
  saver_->go_on_from(beginning_->stored_step(), beginning_->start().parent);
  wait_for_all(world_, "every rank has its state");
  if (check_) in_step(step_, *device_, [&] { check_->vote(); });
  LoaderOptions options = lanes();
  options.first_step = step_ + 1;
  options.skipped = skipped_;
  loader_.reset();  // frees its memory before the next one takes as much
  loader_ = std::make_unique<Loader>(inputs_->training(), options, states);
}

// All ranks must stop after the same step. With several ranks the request travels in a step's
// all-reduce (StepResult::stops), so every rank reads it after the same step, with the same number
// of later steps already started.
bool Trainer::stop_requested() {
  if (world_.size() == 1) stop_ = std::max(stop_, asked_for(signals_));
  return stop_ != Stop::kNo;
}

TrainOutcome Trainer::run() {
  try {
    return train_to_the_end();
  } catch (const Error& error) {
    const bool alone = error.code() == ErrorCode::kPeerLost ||  // the others end as well
                       error.code() == ErrorCode::kWrongBits;
    if (alone) saver_->expect_no_peers();
    try {
      saver_->end();  // complete the save under way, whose state is good
    } catch (const Error&) {
      // The first error is the one to report.
    }
    throw;
  }
}

TrainOutcome Trainer::train_to_the_end() {
  if (step_ >= config_.run.steps && saver_->saved_step() == step_) {
    if (log_) log_->nothing_to_do(step_);
    return TrainOutcome::kFinished;
  }
  step_clock_ = Clock::now();
  while (begun_ < config_.run.steps && !stop_requested()) {
    start_step();
    const bool validates = due(config_.validate.every_steps);
    const bool saves = due(config_.checkpoint.every_steps);
    const bool copies = copies_ && copies_->due(begun_);
    const bool pauses = validates || saves || copies || begun_ == config_.run.steps;
    finish_steps(pauses ? 0 : device_->depth() - 1);
    if (divergence_) {
      roll_back();
      continue;
    }
    if (copies) save_to_memory();
    if (validates) validate();
    if (saves) save_checkpoint();
    saver_->collect();
  }
  finish_steps(0);
  if (divergence_) roll_back();  // it was asked to stop meanwhile
  const bool stopped = step_ < config_.run.steps;
  if (!stopped && inputs_->validation_batches() && !due(config_.validate.every_steps)) validate();
  if (saver_->saved_step() != step_ && !regroups_in_memory()) save_checkpoint();
  saver_->end();
  if (saver_->failure()) throw *saver_->failure();  // the final state is not on disk
  const int signal = signals_.requested();
  const std::string why = !stopped                  ? "done"
                          : stop_ == Stop::kRegroup ? "regroup"
                                                    : signal_name(signal == 0 ? SIGTERM : signal);
  const OrderedJson wire = {{"steps", counted_steps_}, {"collectives", wire_to_json(wire_)}};
  if (log_) {
    log_->stop(step_, why, wire);
  } else {
    log::info("wire {}", wire.dump());
  }
  if (!stopped) return TrainOutcome::kFinished;
  return stop_ == Stop::kRegroup ? TrainOutcome::kRegrouped : TrainOutcome::kStopped;
}

void Trainer::start_step() {
  heartbeat::require_permit(fmt::format("step {} does not begin", begun_ + 1));
  double wait_seconds = 0;
  world_.set_step(begun_ + 1);
  if (device_world_) device_world_->set_step(begun_ + 1);
  const Batch& batch = loader_->next(&wait_seconds);
  const float learning_rate = schedule_.at(begun_ + 1);
  const Wire before = counted_wire(communicators_);
  const bool traced = begun_ + 1 == config_.log.trace_step;
  if (traced) {
    finish_steps(0);
    runner_->executor().start_profile();
  }
  const auto start = Clock::now();
  const double waited = runner_->executor().communication_seconds();
  in_step(begun_ + 1, *device_, [&] {
    runner_->start(batch, begun_ + 1, learning_rate, [&] {
      return StepReport{asked_for(signals_), copies_ ? copies_->report() : CopyReport()};
    });
  });
  // A device behind the host shows the host's time alone, which says nothing of its own.
  if (device_->depth() == 1) {
    heartbeat::worked(seconds_since(start) -
                      (runner_->executor().communication_seconds() - waited));
  }
  add_difference(wire_, counted_wire(communicators_), before);
  under_way_.push_back({learning_rate, wait_seconds});
  ++begun_;
  if (traced) write_trace();
}

void Trainer::write_trace() {
  Executor& executor = runner_->executor();
  executor.stop_profile();
  const fs::path path = fs::path(config_.run.dir) / fmt::format("trace-{}.json", world_.rank());
  write_op_trace(executor.take_spans(), world_.rank(), path);
  if (is_first()) log::info("the ops of step {} are in {}", begun_, path.string());
}

// Waits until at most `remaining` steps are under way, or one has diverged.
void Trainer::finish_steps(int remaining) {
  while (static_cast<int>(under_way_.size()) > remaining && !divergence_) finish_step();
}

void Trainer::finish_step() {
  const StepUnderWay step = under_way_.front();
  under_way_.pop_front();
  const StepResult result = in_step(step_ + 1, *device_, [&] { return runner_->finish(); });
  if (device_world_) device_world_->check({.label = "a training step"});
  stop_ = std::max(stop_, result.stop);
  if (check_) {
    const std::array<double, 3> told = {result.loss, result.grad_norm, result.param_norm};
    in_step(step_ + 1, *device_, [&] { check_->vote(told); });
  }
  if (!is_finite_step(result)) return;
  heartbeat::reach_step(++step_);
  ++counted_steps_;
  tokens_ += result.num_label_tokens;

  StepMetrics metrics;
  metrics.step = step_;
  metrics.loss = static_cast<float>(result.loss);
  metrics.learning_rate = step.learning_rate;
  metrics.grad_norm = result.grad_norm;
  metrics.param_norm = result.param_norm;
  metrics.tokens = tokens_;
  metrics.epoch = static_cast<float>(inputs_->training().epochs(result.progress));
  metrics.comm_exposed_ms =
      static_cast<float>(runner_->executor().take_communication_seconds() * 1e3);
  metrics.data_wait_ms = static_cast<float>(step.wait_seconds * 1e3);
  if (check_) metrics.state_check_ms = static_cast<float>(check_->take_seconds() * 1e3);
  metrics.checkpoint_stall_ms = static_cast<float>(stall_seconds_ * 1e3);
  metrics.replication_stall_ms = static_cast<float>(copy_seconds_ * 1e3);
  // The step time is all the time since the previous step ended, saving and logging included.
  const double seconds = seconds_since(step_clock_);
  step_clock_ = Clock::now();
  if (copies_) copies_->hear(result, seconds - stall_seconds_ - copy_seconds_);
  stall_seconds_ = copy_seconds_ = 0;
  const SpikeDetector::Verdict verdict = spikes_.observe(result.grad_norm);
  watch_spike(verdict);
  if (log_) {
    const int64_t tokens = config_.batch.global_sequences * config_.data.sequence_length;
    leave_out(log_->step(metrics, verdict, seconds, tokens));
  }
}

// Leaves `seconds` out of the time of the next step.
void Trainer::leave_out(double seconds) {
  step_clock_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Trainer::validate() {
  ValidationBatches* batches = inputs_->validation_batches();
  if (batches == nullptr) return;
  const auto start = Clock::now();
  StepRunner::LossSum sum;
  double epochs = 0;  // estimated from this rank's lanes
  batches->rewind();
  while (const Batch* batch = batches->next()) {
    in_step(step_, *device_, [&] { runner_->evaluate(*batch, sum); });
    const double of_all =
        static_cast<double>(config_.batch.global_sequences) / static_cast<double>(batch->sequences);
    epochs = inputs_->validation().epochs(static_cast<double>(batch->progress) * of_all);
  }
  if (is_first() && epochs > 1 && !std::exchange(told_validation_repeats_, true)) {
    log::warn(
        "{} is smaller than validate.batches = {} and was read {:.1f} times: hold more out, or set "
        "validate.batches to {}",
        config_.data.validation, config_.validate.batches, epochs,
        std::max<int64_t>(
            1, static_cast<int64_t>(static_cast<double>(config_.validate.batches) / epochs)));
  }
  if (log_) log_->validation(step_, sum.mean(), sum.num_tokens, seconds_since(start));
  leave_out(seconds_since(start));
}

TrainingState Trainer::state_to_save() {
  heartbeat::require_permit(fmt::format("step {} is not saved", step_));
  if (check_) in_step(step_, *device_, [&] { check_->expect_unchanged(); });
  TrainingState state;
  state.step = state.schedule_step = step_;
  state.seed = static_cast<uint64_t>(config_.run.seed);
  state.tokens_seen = tokens_;
  state.reduction_width = layout_.reduction_width;
  state.timeline = beginning_->start().timeline;
  // Ranks with the same data coordinate have the same lanes, so only one of them stores them.
  if (layout_.is_first_of_replica()) {
    state.first_lane = lanes().first_lane;
  } else {
    state.first_lane.reset();
  }
  state.lanes = lanes_to_json(inputs_->training(), loader_->states());
  state.configuration = beginning_->configuration();
  if (is_first()) state.algorithms = algorithms_;
  state.skein_version = kVersion;
  if (is_first()) state.monitor = spikes_.to_json();
  if (!skipped_.empty()) state.skipped_batches = skipped_.to_json();
  state.roll_backs = roll_backs_;
  return state;
}

void Trainer::save_checkpoint() {
  const auto start = Clock::now();
  saver_->save(state_to_save(), runner_->executor());
  stall_seconds_ += seconds_since(start);
}

// Stopping for another machine waits for no storage where memory keeps the state.
bool Trainer::regroups_in_memory() {
  if (stop_ != Stop::kRegroup || copies_ == nullptr || step_ == config_.run.steps) return false;
  return copies_->save_and_wait(state_to_save(), runner_->executor());
}

void Trainer::save_to_memory() {
  const auto start = Clock::now();
  copies_->save(state_to_save(), runner_->executor());
  copy_seconds_ += seconds_since(start);
}

}  // namespace skein

// The training loop: steps, and what comes between them.
#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "skein/base/machine/clock.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/base/version.h"
#include "skein/record/files/op_trace.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/loop/trainer.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

constexpr double kCheckCorporaSeconds = 3;  // and before each save

Stop asked_for(const StopSignals& signals) {
  const int signal = signals.requested();
  return signal == 0 ? Stop::kNo : signal == SIGUSR2 ? Stop::kRegroup : Stop::kYes;
}

}  // namespace

// All ranks must stop after the same step. With several ranks the request travels in a step's
// all-reduce (StepResult::stop), so every rank reads it after the same step, with the same number
// of later steps already started.
bool Trainer::stop_requested() {
  if (world_.size() == 1) stop_ = std::max(stop_, asked_for(signals_));
  return stop_ != Stop::kNo;
}

// The supervisor passes on SIGTERM in place of SIGINT. Who was asked may be another machine, which
// is not known here.
int Trainer::stop_signal() const {
  if (const int signal = heartbeat::stop_signal()) return signal;
  const int signal = signals_.requested();
  return signal == 0 ? SIGTERM : signal;
}

// For who ends the process without saving.
void Trainer::note_saves() {
  signals_.note_saved(saver_->good_step());
  heartbeat::reach_checkpoint(saver_->good_step());
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
  if (has_nothing_to_do()) {
    if (log_) log_->nothing_to_do(step_, best_.ends_run() ? best_.why() : "");
    return TrainOutcome::kFinished;
  }
  step_clock_ = Clock::now();
  if (step_ == 0 && config_.validate.before_training) validate();
  while (begun_ < config_.run.steps && !stop_requested() && !best_.ends_run()) {
    start_step();
    const bool validates = due(config_.validate.every_steps);
    const bool saves = due(config_.checkpoint.every_steps);
    // What the first step gave is told as soon as it ends: what starts the second one may wait for
    // its graphs, which still run.
    finish_steps(counted_steps_ == 0 ? 0 : device_->depth() - 1);
    // Whether a copy is due depends on what the ranks told each other in the newest finished step.
    const bool copies = copies_ && copies_->due(begun_);
    if (validates || saves || copies || begun_ == config_.run.steps) finish_steps(0);
    if (divergence_) {
      roll_back();
      continue;
    }
    if (validates) validate();
    if (copies) save_to_memory();  // with what the validation said of the best
    // The last step is saved below, with the losses of its validation.
    const bool is_last = best_.is_watched() && begun_ == config_.run.steps;
    if ((saves && !is_last) || (validates && best_.is_new_best(step_))) save_checkpoint();
    if (seconds_since(corpora_clock_) >= kCheckCorporaSeconds) check_corpora();
    saver_->collect();
    note_saves();
  }
  finish_steps(0);
  if (divergence_) roll_back();  // it was asked to stop meanwhile
  const bool is_early = best_.ends_run() && step_ < config_.run.steps;
  const bool stopped = step_ < config_.run.steps && !is_early;
  if (!stopped && !inputs_->validation_sets().empty() && !due(config_.validate.every_steps))
    validate();
  if (saver_->saved_step() != step_ && !regroups_in_memory()) save_checkpoint();
  saver_->end();
  note_saves();
  saver_->require_saved();
  const std::string why = is_early                  ? "no_better"
                          : !stopped                ? "done"
                          : stop_ == Stop::kRegroup ? "regroup"
                                                    : signal_name(stop_signal());
  signals_.note_end();
  const OrderedJson wire = {{"steps", counted_steps_}, {"collectives", wire_to_json(wire_)}};
  if (log_) {
    log_->stop(step_, why, wire, is_early ? best_.why() : "");
  } else {
    log::info_to_file(fmt::format("wire {}", json_text(wire)));
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
  tell_rows(ramp_.size(skipped_.batch_of(begun_ + 1)));
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
  under_way_.push_back({learning_rate, wait_seconds, rows_of_step_});
  ++begun_;
  if (traced) write_trace();
}

void Trainer::tell_rows(int64_t rows) {
  const int64_t before = std::exchange(rows_of_step_, rows);
  if (before == rows || !is_first() || (before == 0 && config_.batch.ramp.empty())) return;
  log::info("from step {} on a batch has {} rows", begun_ + 1, rows);
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
  signals_.note_step(step_);
  ++counted_steps_;
  tokens_ += result.num_label_tokens;

  StepMetrics metrics;
  metrics.step = step_;
  metrics.loss = static_cast<float>(result.loss);
  metrics.learning_rate = step.learning_rate;
  metrics.grad_norm = result.grad_norm;
  metrics.param_norm = result.param_norm;
  metrics.tokens = tokens_;
  const std::vector<double> epochs = inputs_->training().epochs(result.progress);
  metrics.epoch = static_cast<float>(inputs_->training().epoch(epochs));
  for (size_t i = 0; i < config_.data.source.size(); ++i) {
    metrics.epochs.emplace_back(config_.data.source[i].name, static_cast<float>(epochs[i]));
  }
  metrics.comm_exposed_ms =
      static_cast<float>(runner_->executor().take_communication_seconds() * 1e3);
  metrics.data_wait_ms = static_cast<float>(step.wait_seconds * 1e3);
  if (check_) metrics.state_check_ms = static_cast<float>(check_->take_seconds() * 1e3);
  metrics.checkpoint_stall_ms = static_cast<float>(stall_seconds_ * 1e3);
  metrics.replication_stall_ms = static_cast<float>(copy_seconds_ * 1e3);
  // The step time is all the time since the previous step ended, saving and logging included, and,
  // of a device that is in step with the host, the vote.
  const Clock::time_point ended_at = device_->depth() == 1 ? Clock::now() : result.ended_at;
  const double seconds = std::chrono::duration<double>(ended_at - step_clock_).count();
  step_clock_ = ended_at;
  if (copies_) copies_->hear(result, seconds - stall_seconds_ - copy_seconds_);
  stall_seconds_ = copy_seconds_ = 0;
  const SpikeDetector::Verdict verdict = spikes_.observe(result.grad_norm);
  watch_spike(verdict);
  if (log_) {
    const int64_t tokens = step.rows * config_.data.sequence_length;
    leave_out(log_->step(metrics, verdict, seconds, ended_at, tokens));
  }
}

// Leaves `seconds` out of the time of the next step.
void Trainer::leave_out(double seconds) {
  step_clock_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What is committed was trained on the text that the run began with.
void Trainer::check_corpora() {
  in_step(step_, *device_, [&] { inputs_->check_unchanged(); });
  corpora_clock_ = Clock::now();
}

TrainingState Trainer::state_to_save() {
  heartbeat::require_permit(fmt::format("step {} is not saved", step_));
  check_corpora();
  if (check_) in_step(step_, *device_, [&] { check_->expect_unchanged(); });
  TrainingState state = described_state();
  save_lanes(state);
  return state;
}

// All but the lanes, which their ranks know.
TrainingState Trainer::described_state() {
  TrainingState state;
  state.step = state.schedule_step = step_;
  state.seed = static_cast<uint64_t>(config_.run.seed);
  state.tokens_seen = tokens_;
  state.reduction_width = layout_.reduction_width;
  state.timeline = beginning_->start().timeline;
  state.configuration = beginning_->configuration();
  if (is_first()) state.algorithms = algorithms_;
  state.skein_version = kVersion;
  if (is_first()) state.monitor = spikes_.to_json();
  if (!skipped_.empty()) state.skipped_batches = skipped_.to_json();
  state.roll_backs = roll_backs_;
  state.validation = best_.to_json(step_);
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

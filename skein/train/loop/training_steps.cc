#include "skein/train/loop/training_steps.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "skein/base/machine/machine.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/record/files/op_trace.h"
#include "skein/train/loop/in_step.h"

namespace skein {
namespace {

// By the clock of the machine since it booted; 0: never.
double time_to_stop(const PreparedRun& run) {
  const double hours = run.config.run.stop_after_hours;
  const double launched = run.launch.record.at_seconds;
  if (hours == 0) return 0;
  return (launched > 0 ? launched : process_start_seconds()) + hours * 3600;
}

}  // namespace

TrainingSteps::TrainingSteps(const PreparedRun& run, StopSignals& signals, RankState& state,
                             TrainingLanes& lanes, DivergenceWatch& watch)
    : run_(run),
      signals_(signals),
      state_(state),
      lanes_(lanes),
      watch_(watch),
      schedule_(learning_rate_schedule(run.config.optimizer)),
      stop_at_(time_to_stop(run)) {}

bool TrainingSteps::is_out_of_time() const { return stop_at_ > 0 && boot_seconds() >= stop_at_; }

Stop TrainingSteps::asked_for() const {
  const int signal = signals_.requested();
  if (signal == SIGUSR2) return Stop::kRegroup;
  return signal != 0 || is_out_of_time() ? Stop::kYes : Stop::kNo;
}

void TrainingSteps::resume() {
  const CheckpointReader* checkpoint = run_.beginning.checkpoint();
  begun_ = done_ = checkpoint ? checkpoint->state().step : 0;
  tokens_ = checkpoint ? checkpoint->state().tokens_seen : 0;
  heartbeat::reach_step(done_);
  signals_.note_step(done_);
}

void TrainingSteps::start_clock() { ended_ = Clock::now(); }

bool TrainingSteps::is_stop_requested() {
  if (run_.world.size() == 1) stop_ = std::max(stop_, asked_for());
  return stop_ != Stop::kNo;
}

void TrainingSteps::start() {
  const int64_t step = begun_ + 1;
  heartbeat::require_permit(fmt::format("step {} does not begin", step));
  double wait_seconds = 0;
  run_.world.set_step(step);
  if (run_.groups.device_world) run_.groups.device_world->set_step(step);
  const Batch& batch = lanes_.next(step, &wait_seconds);
  const float learning_rate = schedule_.at(step);
  const Wire before = counted_wire(run_.groups.by_axis);
  Executor& executor = state_.runner().executor();
  const bool traced = step == run_.config.log.trace_step;
  if (traced) {
    finish(0);
    executor.start_profile();
  }
  const auto start = Clock::now();
  const double waited = executor.communication_seconds();
  in_step(step, *run_.device, [&] {
    state_.runner().start(batch, step, learning_rate, [&] {
      MemorySaver* copies = state_.copies();
      return StepReport{asked_for(), copies ? copies->report() : CopyReport()};
    });
  });
  // A device behind the host shows the host's time alone, which says nothing of its own.
  if (run_.device->depth() == 1) {
    heartbeat::worked(seconds_since(start) - (executor.communication_seconds() - waited));
  }
  add_difference(wire_, counted_wire(run_.groups.by_axis), before);
  under_way_.push_back({learning_rate, wait_seconds, lanes_.rows()});
  ++begun_;
  if (traced) write_trace();
}

void TrainingSteps::write_trace() {
  Executor& executor = state_.runner().executor();
  executor.stop_profile();
  const int rank = run_.world.rank();
  const fs::path path = fs::path(run_.config.run.dir) / fmt::format("trace-{}.json", rank);
  write_op_trace(executor.take_spans(), rank, path);
  if (run_.is_first()) log::info("the ops of step {} are in {}", begun_, path.string());
}

void TrainingSteps::finish(int remaining) {
  while (std::ssize(under_way_) > remaining && !watch_.has_diverged()) finish_one();
}

void TrainingSteps::finish_one() {
  const UnderWay step = under_way_.front();
  under_way_.pop_front();
  const int64_t number = done_ + 1;
  const StepResult result = in_step(number, *run_.device, [&] { return state_.runner().finish(); });
  if (run_.groups.device_world) run_.groups.device_world->check({.label = "a training step"});
  stop_ = std::max(stop_, result.stop);
  state_.vote(number, std::array<double, 3>{result.loss, result.grad_norm, result.param_norm});
  if (!watch_.accept(number, result)) return;
  heartbeat::reach_step(done_ = number);
  signals_.note_step(done_);
  ++counted_steps_;
  tokens_ += result.num_label_tokens;

  const StepMetrics metrics = metrics_of(result, step);
  // Of a device that is in step with the host the time includes the vote.
  const Clock::time_point ended = run_.device->depth() == 1 ? Clock::now() : result.ended_at;
  const double seconds = std::chrono::duration<double>(ended - ended_).count();
  ended_ = ended;
  if (MemorySaver* copies = state_.copies()) {
    copies->hear(result, seconds - stall_seconds_ - copy_seconds_);
  }
  stall_seconds_ = copy_seconds_ = 0;
  const SpikeDetector::Verdict verdict = watch_.observe(done_, result.grad_norm);
  if (run_.log) {
    const int64_t tokens = step.rows * run_.config.data.sequence_length;
    leave_out(run_.log->step(metrics, verdict, seconds, ended, tokens));
  }
}

StepMetrics TrainingSteps::metrics_of(const StepResult& result, const UnderWay& step) {
  StepMetrics metrics;
  metrics.step = done_;
  metrics.loss = static_cast<float>(result.loss);
  metrics.learning_rate = step.learning_rate;
  metrics.batch_sequences = step.rows;
  metrics.grad_norm = result.grad_norm;
  metrics.param_norm = result.param_norm;
  metrics.tokens = tokens_;
  const Mixture& corpora = run_.inputs.training();
  const std::vector<double> epochs = corpora.epochs(result.progress);
  metrics.epoch = static_cast<float>(corpora.epoch(epochs));
  const auto& sources = run_.config.data.source;
  for (size_t i = 0; i < sources.size(); ++i) {
    metrics.epochs.emplace_back(sources[i].name, static_cast<float>(epochs[i]));
  }
  const auto milliseconds = [](double seconds) { return static_cast<float>(seconds * 1e3); };
  metrics.comm_exposed_ms = milliseconds(state_.runner().executor().take_communication_seconds());
  metrics.data_wait_ms = milliseconds(step.wait_seconds);
  metrics.state_check_ms = milliseconds(state_.take_check_seconds());
  metrics.checkpoint_stall_ms = milliseconds(stall_seconds_);
  metrics.replication_stall_ms = milliseconds(copy_seconds_);
  return metrics;
}

void TrainingSteps::drop() {
  for (; !under_way_.empty(); under_way_.pop_front()) {
    stop_ = std::max(stop_, state_.runner().finish().stop);
  }
}

void TrainingSteps::leave_out(double seconds) {
  ended_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

OrderedJson TrainingSteps::wire() const {
  return {{"steps", counted_steps_}, {"collectives", wire_to_json(wire_)}};
}

}  // namespace skein

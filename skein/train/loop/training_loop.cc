#include "skein/train/loop/training_loop.h"

#include <csignal>

#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/base/version.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/start/consensus.h"
#include "skein/train/start/run_folder.h"

namespace skein {
namespace {

constexpr double kCheckCorporaSeconds = 3;  // and before each save

// The supervisor passes on SIGTERM in place of SIGINT. Who was asked may be another machine, which
// is not known here.
std::string reason_to_stop(const StopSignals& signals, const TrainingSteps& steps) {
  const int passed_on = heartbeat::stop_signal();
  const int signal = passed_on != 0 ? passed_on : signals.requested();
  if (signal != 0) return signal_name(signal);
  return steps.is_out_of_time() ? "run.stop_after_hours" : signal_name(SIGTERM);
}

}  // namespace

TrainingLoop::TrainingLoop(PreparedRun& run, StopSignals& signals)
    : run_(run),
      signals_(signals),
      state_(run),
      lanes_(run),
      watch_(run, state_.saver()),
      validation_(run, state_.runner(), signals),
      evaluation_(run, state_.runner()),
      steps_(run, signals, state_, lanes_, watch_) {
  if (run.beginning.step() < run.config.run.steps) validation_.agree(run.is_first_launch());
  if (!run.only_validates()) evaluation_.prepare(run.is_first_launch());
  begin();
  wait_for_all(run.world, "every rank is ready to train");
}

// All checks have passed: from here on the state is loaded and the run folder is written.
void TrainingLoop::begin() {
  restore();
  if (run_.log) {
    // A start that has nothing to do leaves the files as the run that was trained wrote them.
    const bool trains = steps_.done() < run_.config.run.steps && !has_nothing_to_do();
    if (trains && !run_.only_validates()) {
      manifest_text({.state = described_state()});  // what cannot be saved, no step is trained for
      write_run_folder(run_.config, run_.inputs.model(), run_.inputs.tokenizer());
    }
    if (!has_nothing_to_do() || !run_.log->has_stopped()) {
      run_.log->start(steps_.done(), run_.beginning.from(), run_.beginning.note());
      if (!heartbeat::has_supervisor()) signals_.record_in(run_.config.run.dir);
    }
  }
  weights_ = run_.beginning.weights();
  run_.beginning.forget();
}

// Fills in everything that a checkpoint holds, or the initial state.
void TrainingLoop::restore() {
  state_.load();
  const TrainingLanes::Stand stand = lanes_.stored();
  watch_.resume();
  const CheckpointReader* checkpoint = run_.beginning.checkpoint();
  validation_.best().go_on_from(checkpoint ? checkpoint->state().validation : Json());
  steps_.resume();
  state_.count_from(steps_.done());
  note_saves();
  wait_for_all(run_.world, "every rank has its state");
  state_.vote(steps_.done());
  lanes_.begin(steps_.done(), stand);
}

TrainOutcome TrainingLoop::run() {
  try {
    return train_to_the_end();
  } catch (const Error& error) {
    const bool alone = error.code() == ErrorCode::kPeerLost ||  // the others end as well
                       error.code() == ErrorCode::kWrongBits;
    if (alone) state_.saver().expect_no_peers();
    try {
      state_.saver().end();  // complete the save under way, whose state is good
    } catch (const Error&) {
      // The first error is the one to report.
    }
    throw;
  }
}

bool TrainingLoop::has_nothing_to_do() {
  return (steps_.done() >= run_.config.run.steps || validation_.best().ends_run()) &&
         state_.saver().saved_step() == steps_.done() && !evaluation_.is_any_missing();
}

TrainOutcome TrainingLoop::train_to_the_end() {
  const Config& config = run_.config;
  const BestLoss& best = validation_.best();
  if (has_nothing_to_do()) {
    if (run_.log) run_.log->nothing_to_do(steps_.done(), best.ends_run() ? best.why() : "");
    return TrainOutcome::kFinished;
  }
  steps_.start_clock();
  if (steps_.done() == 0 && config.validate.before_training) validate();
  if (evaluation_.is_any_missing())
    evaluate([&] { evaluation_.make_up_for_missing(steps_.done()); });
  while (steps_.begun() < config.run.steps && !steps_.is_stop_requested() && !best.ends_run()) {
    steps_.start();
    const bool validates = due(config.validate.every_steps);
    const bool saves = due(config.checkpoint.every_steps);
    const bool evaluates = evaluation_.is_due(steps_.begun());
    // What the first step gave is told as soon as it ends: what starts the second one may wait for
    // its graphs, which still run.
    steps_.finish(steps_.done_since_start() == 0 ? 0 : run_.device->depth() - 1);
    // Whether a copy is due depends on what the ranks told each other in the newest finished step.
    const bool copies = state_.copies() && state_.copies()->due(steps_.begun());
    const bool is_last = steps_.begun() == config.run.steps;
    if (validates || evaluates || saves || copies || is_last) steps_.finish(0);
    if (watch_.has_diverged()) {
      roll_back();
      continue;
    }
    if (validates) validate();
    if (copies) save_to_memory();  // with what the validation said of the best
    // With a best loss the last step is saved below, with the losses of its validation.
    const bool saves_now = saves && !(best.is_watched() && is_last);
    if (saves_now || (validates && best.is_new_best(steps_.done()))) save_checkpoint();
    // Behind the save, which a stop meanwhile need not wait for; the next start makes up for it.
    // That of the last step is in end(), behind the last save.
    if (evaluates && !is_last && !steps_.is_stop_requested()) {
      evaluate([&] { evaluation_.evaluate(steps_.done()); });
    }
    if (seconds_since(corpora_checked_) >= kCheckCorporaSeconds) check_corpora();
    state_.saver().collect();
    note_saves();
  }
  steps_.finish(0);
  if (watch_.has_diverged()) roll_back();  // it was asked to stop meanwhile
  return end();
}

TrainOutcome TrainingLoop::end() {
  const BestLoss& best = validation_.best();
  const int64_t steps = run_.config.run.steps;
  const bool is_early = best.ends_run() && steps_.done() < steps;
  const bool stopped = steps_.done() < steps && !is_early;
  const bool validates = validation_.has_sets() && !due(run_.config.validate.every_steps);
  if (!stopped && validates && steps_.done_since_start() > 0) validate();
  Saver& saver = state_.saver();
  if (saver.saved_step() != steps_.done() && !regroups_in_memory()) save_checkpoint();
  if (!stopped) evaluation_.evaluate_at_end(steps_.done(), steps_.done() == steps);
  saver.end();
  note_saves();
  saver.require_saved();
  const bool regroups = stopped && steps_.stop() == Stop::kRegroup;
  const std::string why = is_early   ? "no_better"
                          : !stopped ? "done"
                          : regroups ? "regroup"
                                     : reason_to_stop(signals_, steps_);
  signals_.note_end();
  const OrderedJson wire = steps_.wire();
  if (run_.log) {
    run_.log->stop(steps_.done(), why, wire, is_early ? best.why() : "");
  } else {
    log::info_to_file(fmt::format("wire {}", json_text(wire)));
  }
  if (!stopped) return TrainOutcome::kFinished;
  return regroups ? TrainOutcome::kRegrouped : TrainOutcome::kStopped;
}

void TrainingLoop::roll_back() {
  steps_.drop();
  state_.saver().end();
  const DivergenceWatch::RollBack back = watch_.roll_back(lanes_.skipped());
  run_.beginning.go_back(back.to_step, run_.inputs, run_.checkpoint_lock(), run_.log.get());
  lanes_.skip(back.first_batch, back.last_batch);
  restore();
  if (run_.log) {
    run_.log->roll_back({.step = back.last_step,
                         .to_step = steps_.done(),
                         .from = run_.beginning.checkpoint() ? run_.beginning.from() : "",
                         .batches = {back.first_batch, back.last_batch},
                         .skipped = lanes_.skipped().to_json(),
                         .count = watch_.roll_backs(),
                         .reason = back.reason});
  }
  run_.beginning.forget();
  steps_.start_clock();
}

void TrainingLoop::validate() {
  const auto start = Clock::now();
  validation_.validate(steps_.done());
  steps_.leave_out(seconds_since(start));
}

void TrainingLoop::evaluate(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  steps_.leave_out(seconds_since(start));
}

// What is committed was trained on the text that the run began with.
void TrainingLoop::check_corpora() {
  in_step(steps_.done(), *run_.device, [&] { run_.inputs.check_unchanged(); });
  corpora_checked_ = Clock::now();
}

// All but the lanes, which their ranks know.
TrainingState TrainingLoop::described_state() const {
  TrainingState state;
  state.step = state.schedule_step = steps_.done();
  state.seed = static_cast<uint64_t>(run_.config.run.seed);
  state.tokens_seen = steps_.tokens();
  state.reduction_width = run_.layout.reduction_width;
  state.timeline = run_.beginning.start().timeline;
  state.configuration = run_.beginning.configuration();
  if (run_.is_first()) state.algorithms = state_.algorithms();
  state.skein_version = kVersion;
  if (run_.is_first()) state.monitor = watch_.spikes().to_json();
  if (!lanes_.skipped().empty()) state.skipped_batches = lanes_.skipped().to_json();
  state.roll_backs = watch_.roll_backs();
  state.validation = validation_.best().to_json(steps_.done());
  return state;
}

TrainingState TrainingLoop::state_to_save() {
  heartbeat::require_permit(fmt::format("step {} is not saved", steps_.done()));
  check_corpora();
  state_.expect_unchanged(steps_.done());
  TrainingState state = described_state();
  lanes_.save(steps_.done(), state);
  return state;
}

void TrainingLoop::save_checkpoint() {
  const auto start = Clock::now();
  state_.saver().save(state_to_save(), state_.runner().executor());
  steps_.add_stall(seconds_since(start));
}

void TrainingLoop::save_to_memory() {
  const auto start = Clock::now();
  state_.copies()->save(state_to_save(), state_.runner().executor());
  steps_.add_copy(seconds_since(start));
}

// Stopping for another machine waits for no storage where memory keeps the state.
bool TrainingLoop::regroups_in_memory() {
  MemorySaver* copies = state_.copies();
  const bool regroups = steps_.stop() == Stop::kRegroup && steps_.done() != run_.config.run.steps;
  return regroups && copies != nullptr &&
         copies->save_and_wait(state_to_save(), state_.runner().executor());
}

// For who ends the process without saving.
void TrainingLoop::note_saves() {
  const int64_t step = state_.saver().good_step();
  signals_.note_saved(step);
  heartbeat::reach_checkpoint(step);
}

}  // namespace skein

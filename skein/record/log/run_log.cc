#include "skein/record/log/run_log.h"

#include <algorithm>
#include <cstdio>

#include "skein/base/machine/machine.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/base/version.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/failure_record.h"

namespace skein {
namespace {

constexpr size_t kEndBytes = 1 << 16;  // of metrics.jsonl, where the newest steps are

fs::path create_run_folder(const Config& config) {
  const fs::path dir = config.run.dir;
  make_folders(dir);
  return dir;
}

// One more than the highest of the starts in the run folder. The end of metrics.jsonl counts as
// well: a power cut can take the line of a start and leave those of its steps.
int64_t next_start_number(const fs::path& dir) {
  int64_t highest = 0;
  for_each_json_line(dir / "events.jsonl", [&](const Json& json) {
    if (text_or(json, "event", "") != "start") return;
    highest = std::max(highest, integer_or(json, "number", highest + 1));
  });
  for_each_json_line(
      dir / "metrics.jsonl",
      [&](const Json& json) { highest = std::max(highest, integer_or(json, "start", 0)); },
      kEndBytes);
  return highest + 1;
}

}  // namespace

SpikeDetector spikes_until(const fs::path& metrics_file, int64_t step) {
  SpikeDetector spikes;
  if (step == 0 || !fs::exists(metrics_file)) return spikes;
  std::map<int64_t, float> norms;
  for_each_json_line(metrics_file, [&](const Json& json) {
    const auto metrics = parse_metrics(json);
    if (metrics && metrics->step <= step) norms[metrics->step] = metrics->grad_norm;
  });
  for (const auto& [at, norm] : norms) spikes.observe(norm);
  return spikes;
}

OrderedJson allocated_to_json(const ArenaBytes& arena_bytes, int64_t snapshot_bytes,
                              int64_t loader_bytes) {
  OrderedJson json = OrderedJson::object();
  for (int i = 0; i < kNumArenas; ++i) {
    if (static_cast<Arena>(i) == Arena::kCache) continue;  // training has none
    json[std::string(arena_name(static_cast<Arena>(i)))] = arena_bytes[i];
  }
  json["snapshot"] = snapshot_bytes;
  json["loader"] = loader_bytes;
  return json;
}

RunLog::RunLog(const Config& config, const Launched& launched)
    : config_(config),
      launched_(launched),
      dir_(create_run_folder(config)),
      metrics_(dir_),
      events_(dir_),
      progress_(stderr, log::on_terminal(), config.run.steps, config.log.every_steps) {}

// Prints a line above the progress line.
void RunLog::say(const std::string& line) {
  progress_.clear();
  log::info("{}", line);
}

void RunLog::set_scale(const Scale& scale) {
  scale_ = scale;
  memory_bytes_ = scale.snapshot_bytes + scale.loader_bytes;
  for (const int64_t bytes : scale.arena_bytes) memory_bytes_ += bytes;
  say(fmt::format("{} parameters, {} of memory, kernels for {}, matrix-product ceiling {}FLOP/s",
                  format_count(static_cast<double>(scale.num_parameters)),
                  format_bytes(memory_bytes_), scale.arithmetic,
                  format_count(scale.ceiling_flops)));
}

double RunLog::ceiling_before(int num_ranks) const {
  int64_t number = 0, ranks = 0;
  double ceiling = 0;
  if (launched_.generation == 1) return ceiling;
  for_each_json_line(dir_ / "events.jsonl", [&](const Json& json) {
    if (text_or(json, "event", "") != "start" || integer_or(json, "ranks", 0) <= 0) return;
    number = integer_or(json, "number", 0);
    ranks = integer_or(json, "ranks", 0);
    ceiling = number_or(json, "ceiling_flops", 0);
  });
  const auto raise = [&](const Json& json) {  // as its steps did
    if (integer_or(json, "start", 0) != number) return;
    ceiling = std::max(ceiling, number_or(json, "ceiling_flops", 0));
  };
  if (number > 0) for_each_json_line(dir_ / "metrics.jsonl", raise, kEndBytes);
  return ranks > 0 ? ceiling / static_cast<double>(ranks) * num_ranks : 0;
}

// A new TensorBoard file takes the place of the steps after this one that were written before.
void RunLog::begin_after(int64_t step) {
  if (config_.log.tensorboard) {
    tensorboard_ = std::make_unique<TensorBoardWriter>(dir_ / "tensorboard", step + 1);
  }
  epoch_ = step > 0 ? -1.0f : 0.0f;
}

// Of kernels that round other sums: the run goes on, but not to the bits that it would have had.
void RunLog::tell_other_arithmetic() {
  std::string before;
  for_each_json_line(dir_ / "events.jsonl", [&](const Json& json) {
    if (text_or(json, "event", "") == "start") before = text_or(json, "arithmetic", "");
  });
  if (before.empty() || before == scale_.arithmetic) return;
  progress_.clear();
  log::warn(
      "the start before this one had kernels for {}, this one has those for {}: losses "
      "differ by rounding from what the same machine would have had",
      before, scale_.arithmetic);
}

bool RunLog::has_stopped() const {
  bool stopped = false;
  for_each_json_line(dir_ / "events.jsonl", [&](const Json& json) {
    const std::string event = text_or(json, "event", "");
    const bool fatal = event == "failure" && bool_or(json, "fatal", false);
    if (event == "start" || event == "stop" || fatal) stopped = event == "stop";
  });
  return stopped;
}

void RunLog::start(int64_t step, const std::string& from, const StartNote& note) {
  const std::optional<int64_t> before = last_known_step(dir_);
  begin_after(step);
  if (step > 0) tell_other_arithmetic();
  number_ = next_start_number(dir_);
  const double launched_at =
      launched_.at_seconds > 0 ? launched_.at_seconds : process_start_seconds();
  events_.append(
      "start", {{"number", number_},
                {"step", step},
                {"from", from},
                {"version", kVersion},
                {"parameters", scale_.num_parameters},
                {"ceiling_flops", scale_.ceiling_flops},
                {"ranks", scale_.num_ranks},
                {"arithmetic", scale_.arithmetic},
                {"peak_flops", scale_.peak_flops ? OrderedJson(*scale_.peak_flops) : nullptr},
                {"allocated_bytes",
                 allocated_to_json(scale_.arena_bytes, scale_.snapshot_bytes, scale_.loader_bytes)},
                {"changed", changes_to_json(note.changes)},
                {"generation", launched_.generation},
                {"launched_seconds", boot_seconds() - launched_at},
                {"waited_seconds", launched_.waited_seconds}});
  if (step > 0) {
    say(fmt::format("resuming after step {} from {}{}{}", step, from, note.why.empty() ? "" : ": ",
                    note.why));
    if (!note.changes.empty())
      say(fmt::format("changed since step {}: {}", step, changes_text(note.changes)));
  } else {
    say(from.empty() ? std::string("beginning from random weights")
                     : fmt::format("beginning from the weights of {}", from));
    if (before.value_or(0) > 0 && launched_.generation <= 1) {
      log::warn(
          "{} has steps up to {} of an earlier start, and {} has no checkpoint: they are done "
          "again. If the checkpoints lie elsewhere, stop, and set checkpoint.dir (or a variable in "
          "it)",
          config_.run.dir, *before, checkpoint_dir(config_));
    }
  }
  tell_threads();
}

void RunLog::tell_threads() {
  if (!chose_threads()) return;
  const int64_t tokens = config_.batch.global_sequences * config_.data.sequence_length;
  const std::string advice = thread_advice(work_of(tokens));
  if (!advice.empty()) say(advice);
}

bool RunLog::chose_threads() const {
  return launched_.generation <= 1 && config_.device.threads == 0;
}

StepWork RunLog::work_of(int64_t num_tokens) const {
  return {.flops = scale_.flops_per_token * static_cast<double>(num_tokens),
          .num_calls = scale_.calls_per_step,
          .flops_per_s = scale_.ceiling_flops,
          .threads = scale_.threads};
}

void RunLog::roll_back(const RollBack& roll_back) {
  begin_after(roll_back.to_step);
  events_.append("roll_back", {{"step", roll_back.step},
                               {"to_step", roll_back.to_step},
                               {"from", roll_back.from},
                               {"batches", roll_back.batches},
                               {"skipped", roll_back.skipped},
                               {"count", roll_back.count},
                               {"reason", roll_back.reason}});
  progress_.clear();
  log::warn(
      "step {}: {}; back to step {} ({}), and on without batches {} (roll-back {} of {}); `skein "
      "why {} --batch {}` names the documents of the first",
      roll_back.step, roll_back.reason, roll_back.to_step,
      roll_back.from.empty() ? "the initial weights" : roll_back.from, json_text(roll_back.batches),
      roll_back.count, config_.run.max_roll_backs, config_.run.dir,
      json_text(roll_back.batches[0]));
}

void RunLog::skip_checkpoint(const CheckpointInfo& info, const Error& why) {
  events_.append("checkpoint_skip",
                 {{"step", info.step}, {"path", info.path.string()}, {"reason", why.what()}});
  progress_.clear();
  log::warn("passing over the checkpoint {}: {}", info.path.string(), why.what());
}

void RunLog::tell_spikes(int64_t step, const SpikeDetector::Verdict& verdict) {
  if (verdict.recovered_steps > 0) {
    events_.append("spike", {{"step", step}, {"length", verdict.recovered_steps}});
  }
  if (verdict.alarm.empty()) return;
  events_.append("alarm", {{"step", step}, {"reason", verdict.alarm}});
  progress_.clear();
  log::warn("step {}: {}", step, verdict.alarm);
}

// No share is above 1: a step that reaches more than was measured raises the ceiling. Where a step
// comes near it, a single rank measures it again first, as the machine may have been slower then.
double RunLog::raise_ceiling(double model_flops_per_s) {
  constexpr double kSuspicious = 0.8;
  constexpr double kEverySeconds = 10;
  double measuring_s = 0;
  const double begin = unix_time();
  if (scale_.measure_ceiling && model_flops_per_s >= kSuspicious * scale_.ceiling_flops &&
      begin >= ceiling_time_ + kEverySeconds) {
    scale_.ceiling_flops = std::max(scale_.ceiling_flops, scale_.measure_ceiling());
    ceiling_time_ = unix_time();
    measuring_s = ceiling_time_ - begin;
  }
  scale_.ceiling_flops = std::max(scale_.ceiling_flops, model_flops_per_s);
  return measuring_s;
}

// Warns once, when the corpus begins to repeat; users easily overlook that.
void RunLog::say_repetition(const StepMetrics& metrics) {
  for (size_t i = 0; i < metrics.epochs.size(); ++i) {
    const auto& [name, epochs] = metrics.epochs[i];
    epochs_.resize(metrics.epochs.size(), -1);
    if (epochs_[i] >= 0 && epochs_[i] < 1 && epochs >= 1) {
      events_.append("epoch", {{"step", metrics.step}, {"epoch", epochs}, {"source", name}});
      progress_.clear();
      log::warn("step {}: all of {} has been read once; from here on it repeats", metrics.step,
                name);
    }
    epochs_[i] = epochs;
  }
  if (!metrics.epochs.empty()) return;
  if (epoch_ >= 0 && epoch_ < 1 && metrics.epoch >= 1) {
    events_.append("epoch", {{"step", metrics.step}, {"epoch", metrics.epoch}});
    progress_.clear();
    log::warn(
        "step {}: all of {} has been read once; from here on it repeats (`epoch` in the log and in "
        "metrics.jsonl counts how often)",
        metrics.step, config_.data.train);
  }
  epoch_ = metrics.epoch;
}

double RunLog::step(StepMetrics metrics, const SpikeDetector::Verdict& verdict, double seconds,
                    Clock::time_point ended_at, int64_t num_tokens) {
  const double ago = seconds_since(ended_at);
  metrics.time = unix_time() - ago;
  metrics.start = number_;
  metrics.clock = boot_seconds() - ago;
  metrics.step_ms = static_cast<float>(seconds * 1e3);
  const double tokens_per_s = static_cast<double>(num_tokens) / seconds;
  metrics.tokens_per_s = static_cast<float>(tokens_per_s);
  const double measuring_s = raise_ceiling(scale_.flops_per_token * tokens_per_s);
  const double flops = scale_.flops_per_token * tokens_per_s;
  metrics.matmul_ceiling_share = static_cast<float>(flops / scale_.ceiling_flops);
  metrics.ceiling_flops = static_cast<float>(scale_.ceiling_flops);
  if (scale_.peak_flops) metrics.peak_utilization = static_cast<float>(flops / *scale_.peak_flops);
  metrics_.append(metrics);
  tell_spikes(metrics.step, verdict);
  tell_divergence(metrics);
  if (tensorboard_) tensorboard_->write_step(metrics, memory_bytes_, verdict.spike_steps);
  progress_.update(metrics, metrics.time + ago);
  say_repetition(metrics);
  const double waited = (metrics.data_wait_ms + metrics.comm_exposed_ms + metrics.state_check_ms +
                         metrics.checkpoint_stall_ms + metrics.replication_stall_ms) /
                        1e3;
  const std::string slow =
      chose_threads() ? slow_threads_.after_step(work_of(num_tokens), seconds - waited) : "";
  if (!slow.empty()) {
    progress_.clear();
    log::warn("step {}: {}", metrics.step, slow);
  }
  return measuring_s;
}

void RunLog::checkpoint_begin(int64_t step) {
  events_.append("checkpoint_begin", {{"step", step}});
}

void RunLog::checkpoint_commit(const SavedCheckpoint& saved) {
  events_.append("checkpoint_commit", {{"step", saved.step},
                                       {"path", saved.path.string()},
                                       {"bytes", saved.num_bytes},
                                       {"write_seconds", saved.write_seconds},
                                       {"removed_steps", saved.removed_steps}});
  if (!saved.warning.empty()) {
    progress_.clear();
    log::warn("{}", saved.warning);
  }
  say(fmt::format("saved {} ({}, {})", saved.path.string(), format_bytes(saved.num_bytes),
                  format_duration(saved.write_seconds)));
}

void RunLog::checkpoint_failed(int64_t step, const Error& why) {
  events_.append("failure", {{"step", step}, {"reason", why.what()}, {"fatal", false}});
  progress_.clear();
  log::error("{}{}", step < config_.run.steps ? "training continues: " : "", why.what());
}

void RunLog::nothing_to_do(int64_t step, const std::string& ended_early) {
  if (!ended_early.empty()) {
    say(
        fmt::format("the run ended at step {}: {}; set run.stop_after_worse higher, or 0, to "
                    "continue",
                    step, ended_early));
    if (number_ > 0) stop(step, "no_better", nullptr, ended_early);
    return;
  }
  say(
      fmt::format("step {} is done and run.steps is {}: nothing to do; set run.steps higher to "
                  "continue",
                  step, config_.run.steps));
  if (number_ > 0) stop(step, "done");
}

void RunLog::stop(int64_t step, const std::string& why, const OrderedJson& wire,
                  const std::string& explained) {
  progress_.finish();
  OrderedJson fields = {{"step", step}, {"reason", why}};
  if (!explained.empty()) fields["explained"] = explained;
  if (!wire.is_null()) fields["wire"] = wire;
  if (const int64_t peak = peak_resident_bytes(); peak > 0) fields["peak_resident_bytes"] = peak;
  events_.append("stop", fields);
  metrics_.finish();
  events_.finish();
  if (tensorboard_) tensorboard_->finish();
  if (why == "regroup") {
    say(
        fmt::format("step {}: the workers stop to take in another machine; training continues from "
                    "here",
                    step));
  } else if (!explained.empty()) {
    say(fmt::format("ended at step {}, saved: {}", step, explained));
  } else if (why != "done") {
    say(fmt::format("stopped by {} at step {}, saved; run again to continue", why, step));
  }
}

}  // namespace skein

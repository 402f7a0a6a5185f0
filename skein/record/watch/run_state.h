// What a run watch knows of a run, and how it says it to Prometheus; for run_watch.cc alone.
//
// Threads  one at a time
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "skein/base/text/json.h"
#include "skein/record/files/evaluated_score.h"
#include "skein/record/files/metrics.h"
#include "skein/record/log/spikes.h"
#include "skein/record/report/idle_starts.h"
#include "skein/record/report/time_ledger.h"
#include "skein/record/watch/prometheus_text.h"

namespace skein {

class RunState {
 public:
  RunState(int64_t total_steps, double began) : total_steps_(total_steps), began_(began) {}

  void add_event(const Json& event);
  void add_step(const StepMetrics& metrics);
  // From the end of the file, before all of it was read.
  void note_newest(const StepMetrics& metrics) { newest_ = metrics; }
  const std::optional<StepMetrics>& newest() const { return newest_; }
  void settle() { ledger_.settle(); }
  void note_error() { ++watch_errors_; }

  // `is_whole`: all of the files was read once.
  void add_newest(PrometheusText& text, double now, bool is_whole) const;
  void add_times(PrometheusText& text) const;
  void add_failures(PrometheusText& text) const;
  void add_checkpoints(PrometheusText& text, double now) const;
  int64_t watch_errors() const { return watch_errors_; }

 private:
  void count_event(const Json& event);
  void add_scores(PrometheusText& text) const;

  const int64_t total_steps_;
  const double began_;  // Unix seconds
  IdleStarts idle_starts_;
  TimeLedger ledger_;
  SpikeDetector spikes_;
  std::optional<StepMetrics> newest_;
  int64_t memory_bytes_ = 0;
  std::map<std::string, int64_t> events_by_name_;
  std::map<std::string, int64_t> restarts_by_cause_;
  int64_t fatal_failures_ = 0, checkpoint_failures_ = 0;
  int64_t checkpoint_step_ = 0;
  double checkpoint_time_ = 0;
  std::map<std::string, double> validation_losses_;  // the newest, by set
  std::map<std::string, EvaluatedScore> scores_;     // likewise, by name
  int64_t watch_errors_ = 0;
};

}  // namespace skein

// What Prometheus is told of a run: read from metrics.jsonl and events.jsonl as they grow, so that
// it outlives the workers, and is what `skein report` says.
//
// Cost     of a scrape: parsing the lines that were added since the last one
// Threads  set_cluster and text may be called from any
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "skein/base/mutex.h"
#include "skein/config/config.h"
#include "skein/record/idle_starts.h"
#include "skein/record/jsonl.h"
#include "skein/record/prometheus_text.h"
#include "skein/record/spikes.h"
#include "skein/record/time_ledger.h"

namespace skein {

struct Cluster {
  int64_t generation = 1;
  int64_t hosts = 1, hosts_wanted = 1;
};

class RunWatch {
 public:
  explicit RunWatch(const Config& config);

  void set_cluster(const Cluster& cluster);
  // The text for one scrape. What cannot be read is left out, and counted in
  // skein_watch_errors_total.
  std::string text() noexcept;

 private:
  void read_on() SKEIN_REQUIRES(mutex_);
  void add_event(const Json& event) SKEIN_REQUIRES(mutex_);
  void add_times(PrometheusText& text) const SKEIN_REQUIRES(mutex_);
  void add_failures(PrometheusText& text) const SKEIN_REQUIRES(mutex_);
  void add_checkpoints(PrometheusText& text, double now) const SKEIN_REQUIRES(mutex_);
  void add_disks(PrometheusText& text) const SKEIN_REQUIRES(mutex_);

  const fs::path run_dir_, checkpoint_dir_;
  const int64_t total_steps_;
  const double began_;  // Unix seconds
  Mutex mutex_;
  JsonlTail events_ SKEIN_GUARDED_BY(mutex_), metrics_ SKEIN_GUARDED_BY(mutex_);
  Cluster cluster_ SKEIN_GUARDED_BY(mutex_);
  IdleStarts idle_starts_ SKEIN_GUARDED_BY(mutex_);
  TimeLedger ledger_ SKEIN_GUARDED_BY(mutex_);
  SpikeDetector spikes_ SKEIN_GUARDED_BY(mutex_);
  std::optional<StepMetrics> newest_ SKEIN_GUARDED_BY(mutex_);
  int64_t memory_bytes_ SKEIN_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> events_by_name_ SKEIN_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> restarts_by_cause_ SKEIN_GUARDED_BY(mutex_);
  int64_t fatal_failures_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t checkpoint_failures_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t checkpoint_step_ SKEIN_GUARDED_BY(mutex_) = 0;
  double checkpoint_time_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t watch_errors_ SKEIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace skein

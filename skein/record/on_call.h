// What watches a run for people: the metrics of [log] prometheus and the command of
// launch.on_event. It lives in the process that outlives the workers, on the machine of rank 0.
#pragma once

#include <optional>

#include "skein/config/config.h"
#include "skein/record/event_command.h"
#include "skein/record/prometheus.h"
#include "skein/record/run_watch.h"

namespace skein {

class OnCall {
 public:
  // Does nothing before it is told to lead, and nothing at all where neither is asked for.
  explicit OnCall(const Config& config);

  // From here on this machine watches, or another one does. Throws Error{kUsage} where the address
  // of [log] prometheus cannot be had.
  void lead(bool leads, const Cluster& cluster = {});

 private:
  const std::string address_;
  RunWatch watch_;
  std::optional<PrometheusServer> server_;
  std::optional<EventCommand> command_;
};

}  // namespace skein

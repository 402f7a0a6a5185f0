// What watches a run for people: the metrics of [log] prometheus and the command of
// launch.on_event. It lives in the process that outlives the workers, on the machine of rank 0.
//
// Threads  lead() is called by the thread of the supervisor, which others count on: it waits for no
//          thread that reads a file, renders or answers
#pragma once

#include <optional>

#include "skein/config/config.h"
#include "skein/record/watch/event_command.h"
#include "skein/record/watch/prometheus.h"
#include "skein/record/watch/run_watch.h"

namespace skein {

class OnCall {
 public:
  // Looks the address up, and does nothing before lead(true); nothing at all where neither is asked
  // for. Throws Error{kUsage} for an address that is none.
  explicit OnCall(const Config& config);

  // From here on this machine watches, or another one does. Throws Error{kUsage} where the address
  // of [log] prometheus cannot be had.
  void lead(bool leads, const Cluster& cluster = {});

 private:
  std::optional<ListenAddress> address_;
  RunWatch watch_;
  std::optional<PrometheusServer> server_;
  std::optional<EventCommand> command_;
};

}  // namespace skein

// One machine of a run: the supervisor (supervise/supervisor.h) with real processes, signals, a
// real store and the real clock.
//
// Threads  the calling thread waits for signals; the store's calls have a thread of their own
// Check    of this machine, a process of its own (host_check.h)
// Workers  crew.h
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "skein/launch/node/blocked_signals.h"
#include "skein/launch/node/crew.h"
#include "skein/launch/node/host_check.h"
#include "skein/launch/node/host_probe.h"
#include "skein/launch/node/stop_requests.h"
#include "skein/launch/node/store_thread.h"
#include "skein/launch/node/worker_failure.h"
#include "skein/launch/node/workers.h"

namespace skein {

class NodeSupervisor {
 public:
  // Signals are held back from here on.
  explicit NodeSupervisor(const WorkerLaunch& launch);
  ~NodeSupervisor();
  NodeSupervisor(const NodeSupervisor&) = delete;
  NodeSupervisor& operator=(const NodeSupervisor&) = delete;

  // Until the run ends for this machine. Returns the exit code; throws WorkerError for a failure
  // that ends the run.
  int run();

 private:
  void perform();
  void perform(const Action& action);
  void start_crew(const GenerationRecord& generation);
  void say_that_it_begins(const GenerationRecord& generation);
  void end_crew();
  void reap();
  void ended(int index, int status);
  void handle(int signal);
  void write_stacks(const Action& action);
  void sample_heartbeats();
  void sample_heartbeat(int index);
  void start_check(int64_t number);
  void poll_check();
  void hear(const StoreThread::Answer& answer);
  void ask_awaited();
  void count_waiting();
  int end_run();

  const WorkerLaunch launch_;
  BlockedSignals signals_;
  Crew crew_;
  Supervisor supervisor_;
  StoreThread store_;
  StoreView view_;  // the newest
  HostProbe probe_;
  std::unique_ptr<HostCheck> check_;  // under way
  GenerationFailure failure_;
  Millis waited_ = 0, looked_ = 0;  // for machines or a back-off, until the last look
  StopRequests stops_;
  std::optional<int64_t> unsaved_since_;  // ended at once; the step of the newest checkpoint
  bool in_memory_alone_ = false;  // the newest steps, since the last generation stopped for another
  bool store_failed_ = false;
  std::optional<Verdict> exit_;
};

}  // namespace skein

// One machine of a run: the supervisor (supervise/supervisor.h) with real processes, signals, a
// real store and the real clock.
//
// Threads  the calling thread waits for signals; the store's calls have a thread of their own
// Check    of this machine, a process of its own (host_check.h)
// Workers  die with this process (PR_SET_PDEATHSIG)
#pragma once

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/shared/heartbeat.h"
#include "skein/launch/node/blocked_signals.h"
#include "skein/launch/node/host_check.h"
#include "skein/launch/node/host_probe.h"
#include "skein/launch/node/store_thread.h"
#include "skein/launch/node/worker_failure.h"
#include "skein/launch/node/worker_process.h"
#include "skein/launch/node/workers.h"
#include "skein/replica/server.h"

namespace skein {

// The workers of one generation on this machine.
struct Crew {
  int64_t number = 0;  // of the generation
  int first_rank = 0, size = 0;
  std::string start_id;
  fs::path rendezvous;
  std::vector<WorkerProcess> workers;
  struct Seen {
    int64_t progress = -1;  // as the worker counts
    int64_t told = 0;       // as the supervisor does
  };
  std::vector<Seen> seen;
  int64_t oom_kills = 0;  // of this machine, when they started
  Millis waited = 0;      // before they started, for machines or a back-off
};

// Sent to the supervisor by its store's thread when it has an answer, and for a worker that stays.
inline int wake_signal() { return SIGRTMIN; }

// Errors kIo
void make_launch_folder(const fs::path& path);

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
  void start_worker(int index);
  std::vector<std::string> environment_of(int index);
  bool goes_on(int index);
  void reap();
  void ended(int index, int status);
  void handle(int signal);
  void ask_workers(int signal);
  void send_all(int signal);
  void write_stacks(const Action& action);
  void sample_heartbeats();
  void sample_heartbeat(int index);
  void start_check(int64_t number);
  void kill_check();
  void hear(const StoreThread::Answer& answer);
  std::optional<ReplicaEndpoint> next_machine(const GenerationRecord& generation) const;
  void ask_awaited();
  void count_waiting();
  void note_failure();
  void end_crew();

  const WorkerLaunch launch_;
  const std::string start_id_;
  BlockedSignals signals_;
  std::optional<ReplicaServer> replicas_;  // nothing: no copies of the state are kept
  Supervisor supervisor_;
  StoreThread store_;
  StoreView view_;  // the newest
  HeartbeatPage heartbeats_;
  FileDescriptor output_, error_output_;  // this process's, for the worker that is rank 0
  std::optional<Crew> crew_;
  std::map<int, WorkerProcess> staying_;  // of the generation before, by their index
  HostProbe probe_;
  std::unique_ptr<HostCheck> check_;      // under way
  std::optional<WorkerFailure> failure_;  // the cause of the end of failure_generation_, if here
  int64_t failure_generation_ = 0;
  std::optional<Millis> known_;  // when the failure that ended the newest generation became known
  Millis waited_ = 0, looked_ = 0;  // for machines or a back-off, until the last look
  bool stop_requested_ = false;
  std::optional<Millis> interrupted_;  // when the first SIGINT came
  std::optional<int64_t>
      unsaved_since_;             // ended by a second one; the step of the newest checkpoint
  bool in_memory_alone_ = false;  // the newest steps, since the last generation stopped for another
  bool store_failed_ = false;
  std::optional<Verdict> exit_;
};

}  // namespace skein

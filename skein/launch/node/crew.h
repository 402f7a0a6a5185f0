// The workers of this machine as processes, one generation after another: how they are started and
// asked to stop, their heartbeats, and what is left of them.
//
// Order    begin(), start(), …, end(), for each generation
// Workers  die with this process (PR_SET_PDEATHSIG). One that stays when its generation is over
//          becomes a worker of the next one
// Errors   kIo
#pragma once

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/shared/heartbeat.h"
#include "skein/launch/node/worker_process.h"
#include "skein/launch/node/workers.h"
#include "skein/replica/server.h"
#include "skein/supervise/store_view.h"

namespace skein {

// Sent to the supervisor by its store's thread when it has an answer, and for a worker that stays.
inline int wake_signal() { return SIGRTMIN; }

class Crew {
 public:
  // `launch` must outlive the crew. Workers begin with `signal_mask`.
  Crew(const WorkerLaunch& launch, const sigset_t& signal_mask);
  // Nothing: no copies of the state are kept.
  const std::optional<ReplicaServer>& replicas() const { return replicas_; }

  struct Generation {
    int64_t number = 0;
    int first_rank = 0, size = 0;
    std::string start_id;
    fs::path rendezvous;
    int64_t oom_kills = 0;  // of this machine, when it began
    Millis waited = 0;      // before it began, for machines or a back-off
    bool leads() const { return first_rank == 0; }
  };
  const Generation& begin(const GenerationRecord& record, Millis waited);
  // `view`: where the next machine is found, which keeps copies of what the workers have.
  void start(const GenerationRecord& record, const StoreView& view, Millis permitted_until);
  int num_started() const { return static_cast<int>(workers_.size()); }
  std::vector<pid_t> process_ids() const;  // by index
  // Kills what still runs; what stays may be of the next generation.
  void end();
  // Null between generations.
  const Generation* generation() const { return generation_ ? &*generation_ : nullptr; }
  bool any_runs() const;

  void send(int signal) const;
  // To stop after the same step: `signal`, as it came, or kRegroup.
  void ask(int signal) const;
  // Asks them to end at once.
  void ask_to_end() const;
  void permit_until(Millis time) const { heartbeats_.permitted_until() = time; }
  // The step of the newest checkpoint in storage; 0: there is none.
  int64_t saved_step() const { return heartbeats_.slot(0).stored; }

  bool runs(int index) const { return workers_[static_cast<size_t>(index)].running(); }
  // As WorkerProcess::poll.
  std::optional<int> poll(int index) { return workers_[static_cast<size_t>(index)].poll(); }
  struct Heartbeat {
    int64_t progress, step, work_us;
    bool waits;
  };
  Heartbeat heartbeat(int index, Millis now);
  // Logs the stacks of all threads of all workers.
  void write_stacks() const;

 private:
  void start_worker(int index);
  std::vector<std::string> environment_of(int index);
  bool is_kept(int index);
  std::optional<ReplicaEndpoint> next_machine(const GenerationRecord& record,
                                              const StoreView& view) const;

  const WorkerLaunch& launch_;
  const sigset_t signal_mask_;
  const std::string start_id_;
  std::optional<ReplicaServer> replicas_;
  HeartbeatPage heartbeats_;
  FileDescriptor output_, error_output_;  // this process's, for the worker that is rank 0

  std::optional<Generation> generation_;
  std::vector<WorkerProcess> workers_;
  struct Seen {
    int64_t progress = -1;  // as the worker counts
    int64_t changes = 0;    // of it
  };
  std::vector<Seen> seen_;
  std::map<int, WorkerProcess> staying_;  // of the generation before, by their index
};

}  // namespace skein

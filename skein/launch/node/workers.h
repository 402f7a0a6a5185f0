// The workers of a run on this machine: each this program again, with the same arguments.
//
// The parent is their supervisor (node_supervisor.h): it passes each worker its rank (rank_info.h),
// forwards SIGTERM, SIGUSR1, SIGHUP and SIGINT, watches, and starts them again after a failure.
// Rank 0 keeps the terminal; output of the other ranks is appended to their logs. When a worker
// fails, the others get SIGTERM, and SIGKILL after `grace_s`. A worker that lost a peer is a
// consequence, not a cause: the parent waits up to `grace_s` for the worker that failed for another
// reason, and reports that one.
//
// Threads  OMP_NUM_THREADS of a worker is `threads`; if that is 0 and the variable is not set, the
//          cores that this process may use divided by the workers, at least 1. Workers that divide
//          all cores this way are bound to their share (worker_cores.h).
// Orphans  none: workers die with the parent (prctl PR_SET_PDEATHSIG), and run_workers throws only
//          after every worker has ended.
// Signals  are blocked in the parent while it waits; one call at a time, from the main thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/launch/node/worker_failure.h"
#include "skein/launch/place/rank_info.h"
#include "skein/store/job_secret.h"
#include "skein/store/key_value_store.h"
#include "skein/supervise/membership.h"
#include "skein/supervise/stragglers.h"

namespace skein {

struct GenerationBegins {
  GenerationRecord record;
  bool leads = false;  // rank 0 is on this machine
  // How long ago this machine knew that the generation before had failed, and how much of that, or
  // of the time since it was launched, it waited for machines or a back-off.
  Millis known = 0, waited = 0;
};

struct WorkerLaunch {
  int num_workers = 1;
  std::vector<std::string> arguments;  // the program's, without its name
  fs::path run_dir;                    // logs go to run_dir/logs
  std::string rendezvous;              // launch.rendezvous
  int threads = 0;                     // device.threads
  double grace_s = 5;

  MembershipOptions membership;             // one machine, unless it says otherwise
  Millis hang = 300'000;                    // launch.hang_timeout_s
  std::string host = "this machine";        // HostRecord::host
  std::string succeeds;                     // HostRecord::succeeds
  std::string start_id;                     // the same on all machines of the run; empty: a new one
  std::shared_ptr<KeyValueStore> store;     // where machines meet, if there are several
  std::shared_ptr<const JobSecret> secret;  // of the run, if there are several
  std::shared_ptr<StoreRoot> ranks_meet;    // where ranks do, if not in the folder `rendezvous`
  // The program's, to check this machine before each generation; none: it is taken to be well.
  std::vector<std::string> check_arguments;
  // For the run's record: a failure after which training goes on, and every generation that this
  // machine takes part in, before its workers start.
  std::function<void(const WorkerFailure&)> on_failure;
  std::function<void(const GenerationBegins&)> on_generation;
  bool keeps_replicas = true;                          // copies of the state in memory (replica/)
  std::function<void(const Straggler&)> on_straggler;  // on the machine of rank 0
  // On the machine whose memory or arithmetic was wrong.
  std::function<void(const std::string& reason, bool persistent)> on_wrong_bits;
  // After a second SIGINT ended every worker of this machine without saving: the step of the newest
  // checkpoint, 0 where there is none.
  std::function<void(int64_t saved_step)> on_unsaved_stop;
  int stages = 1;  // parallel.pipeline: ranks of one stage are each other's peers
  int lock = -1;   // a file that tells whether processes of `host` live; workers inherit it
};

// What run_workers throws where a worker failed.
class WorkerError : public Error {
 public:
  explicit WorkerError(const WorkerFailure& failure)
      : Error(failure.code, failure.message), rank_(failure.rank), in_its_log_(failure.told) {}
  int rank() const { return rank_; }
  // Whether the worker logged the failure itself; the log of a killed worker ends without a
  // message.
  bool in_its_log() const { return in_its_log_; }

 private:
  int rank_;
  bool in_its_log_;
};

// Returns the exit code: 0 when training is done, 75 when it stopped because of a signal.
// Errors  WorkerError for a failure that no restart can mend, or that came too often: "rank 3
//         failed: <its message> (log: ...)", with its code; "rank 3 was killed by signal 9..."
int run_workers(const WorkerLaunch& launch);

// Runs `body` in a worker and returns its exit code. If run_workers started this process, it dies
// with its parent, and an exception is logged, reported to the parent and turned into exit code 1
// or 2; a worker that lost a peer, or was asked to stop, stays, and `body` runs again in the next
// generation (worker_orders.h). Otherwise exceptions pass through, and rank 0 removes the folder
// where it would have told why it failed after success.
// `rendezvous` and `run_dir` as in rendezvous_folder.
int run_as_worker(const RankInfo& rank_info, const std::string& rendezvous, const fs::path& run_dir,
                  const std::function<int(const RankInfo&)>& body);

// Makes the system kill this process when its parent ends. Throws Error{kPeerLost} if the parent
// has ended already.
void die_with_parent(int64_t parent_pid);

}  // namespace skein

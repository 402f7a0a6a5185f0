// `launch.workers = N`: N workers on this machine, this program once more with the same arguments.
//
// The parent tells each its place (SKEIN_RANK, …; place.h), passes SIGTERM, SIGUSR1, SIGHUP and
// SIGINT on, and waits. Rank 0 keeps the terminal; what other ranks write to standard output and
// error is appended to their logs. The first worker that fails ends the run: the others get
// SIGTERM, and SIGKILL after `grace_s`. A worker that lost a peer is a consequence, not a cause:
// the parent waits up to `grace_s` for the one that failed otherwise, and names that one.
//
// Threads  of a worker: OMP_NUM_THREADS where `threads` is given; where neither says anything, the
//          cores that this process may use divided by the workers, at least 1. Workers that share
//          out all cores so are bound to theirs (cores.h).
// Orphans  none: workers die with the parent (prctl PR_SET_PDEATHSIG), and whatever run_workers
//          throws, every worker has ended before.
// Signals  are blocked in the parent while it waits; one call at a time, from the main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/launch/rank_info.h"
#include "skein/launch/worker_failure.h"

namespace skein {

struct WorkerLaunch {
  int num_workers = 1;
  std::vector<std::string> arguments;  // of this program, without its name
  fs::path run_dir;                    // logs are in run_dir/logs
  std::string rendezvous;              // launch.rendezvous
  int threads = 0;                     // device.threads
  double grace_s = 5;
};

// What run_workers throws where a worker failed.
class WorkerError : public Error {
 public:
  explicit WorkerError(const WorkerFailure& failure)
      : Error(failure.code, failure.message), rank_(failure.rank), in_its_log_(failure.told) {}
  int rank() const { return rank_; }
  // The worker said it itself; where it was killed, its log ends without a word.
  bool in_its_log() const { return in_its_log_; }

 private:
  int rank_;
  bool in_its_log_;
};

// The exit code: 0 when every worker is done, 75 when they stopped because a signal asked them to.
// Errors  WorkerError: the first failure that no other one caused: "rank 3 failed: <what it said>
//         (log: …)", with its code; "rank 3 was killed by signal 9 (SIGKILL)…"
int run_workers(const WorkerLaunch& launch);

// Runs `body` in a worker and returns its exit code. Where run_workers started this process, it
// ends with its parent, and what `body` throws is logged, reported to the parent and turned into
// exit code 1 or 2. Elsewhere it is thrown on, and rank 0 removes the folder when all is well.
int run_as_worker(const RankInfo& rank_info, const fs::path& rendezvous_folder,
                  const std::function<int()>& body);

// This process gets SIGKILL when its parent ends. Errors  kPeerLost where it ended already.
void die_with_parent(int64_t parent_pid);

// A worker's last words, for the parent: <rendezvous_folder>/failed-00003, atomically.
void report_failure(const fs::path& rendezvous_folder, int rank, const Error& error);
std::optional<Error> read_failure(const fs::path& rendezvous_folder, int rank);

}  // namespace skein

// Which checkpoint a start resumes from, and on which timeline it saves.
//
// auto    the newest good checkpoint of the newest timeline in the run's folder of checkpoints;
//         without any, a new run
// never   a new run; refused where there are checkpoints
// PATH    a checkpoint, or a run, which means its newest checkpoint. PATH is where an *empty* run
//         begins: once the run has checkpoints that descend from PATH, the same command resumes
//         from the newest of those. A checkpoint in the run's own folder rewinds the run to it:
//         later checkpoints stay where they are, on a timeline that is not resumed any more
//
// Order    rank 0 alone does this, under the lock: it removes what a crash left, then searches
// Errors   Error{kUsage} where PATH is no checkpoint, or the run did not begin from it; kCorrupt
//          where there are checkpoints and none is good, since a new run beside them would hide the
//          loss; kIo where they cannot be read now (checkpoint/find/newest_good.h)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "skein/checkpoint/find/newest_good.h"
#include "skein/checkpoint/find/run_lock.h"
#include "skein/comm/communicator.h"
#include "skein/config/config.h"

namespace skein {

struct StartingPoint {
  std::string checkpoint;  // "": a new run
  Timeline timeline;       // of the checkpoints that this start saves
  std::string why;         // why this one, as a clause for the log; "" where there was no choice
  // A checkpoint of another timeline that this run starts from. The hold keeps retention from
  // removing it before this run has saved a checkpoint of its own.
  std::shared_ptr<const CheckpointHold> parent;
};

// Locks a folder of checkpoints; an error names `run_dir` as the run that wants it.
RunLock lock_checkpoints(const std::string& dir, const std::string& run_dir);

// The locks on a run's folder and, where it is a different one, on its folder of checkpoints. A
// bucket has no locks: two runs that save under one URL are found by their timelines alone.
struct RunLocks {
  RunLock run;
  std::optional<RunLock> elsewhere;
  const RunLock& checkpoints() const { return elsewhere ? *elsewhere : run; }
  // As RunLock::require(), of both.
  void require() const {
    run.require();
    if (elsewhere) elsewhere->require();
  }
};
RunLocks lock_run(const Config& config);

// Throws Error{kUsage} where run.resume names nothing from which an empty run could begin. Reads no
// bucket.
void require_resume(const Config& config);

// `dir`: the run's folder of checkpoints, which `lock` locks.
StartingPoint choose_start(const RunLock& lock, const fs::path& dir, const std::string& resume,
                           const ReportDamaged& report_damaged, const SearchOptions& options = {});

// Where a run that diverged goes back to: the newest good checkpoint at or before `step` that the
// run on the timeline `current` follows from, else `origin`, the checkpoint that this start began
// from ("": initial weights). It goes on from there on a new timeline. Errors: kNotFound where
// `origin` is of a later step.
StartingPoint choose_before(const RunLock& lock, const fs::path& dir, int64_t step,
                            const Timeline& current, const std::string& origin,
                            const ReportDamaged& report_damaged, const SearchOptions& options = {});

// Broadcasts rank 0's checkpoint and timeline; `parent` stays each rank's own.
StartingPoint start_of_rank_0(Communicator& world, StartingPoint own);

}  // namespace skein

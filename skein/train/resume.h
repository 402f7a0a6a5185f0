// Which checkpoint a start goes on from, and on which timeline it saves.
//
//   auto    the newest good checkpoint of the newest timeline in the run's folder of checkpoints;
//           nothing there: begin anew
//   never   begin anew; refused where there are checkpoints
//   PATH    a checkpoint, or a run: its newest. The start of an *empty* run: once the run has
//           checkpoints that follow from PATH, the same command goes on from the newest of those.
//           A checkpoint of the run's own folder is gone back to: what came after it is left where
//           it is, and not taken up again
//
// Order    what a crash left is cleared first, then the search: for rank 0 alone, under the lock
// Errors   Error{kUsage} for a PATH that is none, or a run that did not begin from it; kCorrupt
//          where there are checkpoints and none is good: never begins anew beside them; kIo where
//          they cannot be read now (checkpoint_search.h)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "skein/checkpoint/checkpoint_search.h"
#include "skein/checkpoint/run_lock.h"
#include "skein/comm/communicator.h"
#include "skein/config/config.h"

namespace skein {

struct StartingPoint {
  std::string checkpoint;  // "": begin anew
  Timeline timeline;       // of what is saved from here on
  std::string why;         // for people; "" where there was no choice
  // Of another timeline: not to be removed before there is a first checkpoint of this one.
  std::shared_ptr<const CheckpointHold> parent;
};

// The lock on a folder of checkpoints.
RunLock lock_checkpoints(const std::string& dir, const std::string& run_dir);

// On a run's folder, and on that of its checkpoints where it is another one.
struct RunLocks {
  RunLock run;
  std::optional<RunLock> elsewhere;
  const RunLock& checkpoints() const { return elsewhere ? *elsewhere : run; }
};
RunLocks lock_run(const Config& config);

// `dir`: the run's folder of checkpoints, locked by `lock`.
StartingPoint choose_start(const RunLock& lock, const fs::path& dir, const std::string& resume,
                           const ReportDamaged& report_damaged, const SearchOptions& options = {});

// Rank 0's checkpoint and timeline, on every rank.
StartingPoint start_of_rank_0(Communicator& world, StartingPoint own);

}  // namespace skein

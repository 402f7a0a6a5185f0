// A run on one of its ranks, as set-up leaves it before anything is allocated for its state: what
// the training loop reads and does not change.
//
// Order    of the members is the order of set-up: lock the run folder; read the tokenizer and the
//          model; choose the checkpoint to resume from; lay out the ranks; open the device; open
//          the corpora; check that the checkpoint or the weights suit this run; measure the
//          ceiling; plan; check that all ranks have the memory
// Ranks    collective. Rank 0 alone locks, writes the logs and chooses checkpoints
// Changes  the objects that the run uses: the log, the groups, the inputs as they are read, and the
//          beginning, if the run goes back
// Errors   every check of the inputs comes before the first step
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/files/lost_pages.h"
#include "skein/compile/step_programs.h"
#include "skein/data/lanes/skipped_batches.h"
#include "skein/record/log/run_log.h"
#include "skein/train/start/beginning.h"
#include "skein/train/start/rank_groups.h"
#include "skein/train/start/resume.h"
#include "skein/train/start/run_inputs.h"
#include "skein/weights/state_tensors.h"

namespace skein {

// How the process of a rank was launched.
struct RankLaunch {
  std::string start_id = "alone";        // the same on all ranks, and different at each start
  int local_rank = 0;                    // among the ranks of this node, which selects the GPU
  std::optional<ReplicaPlace> replicas;  // nothing: no copies of the state are kept in memory
  Launched record;                       // what came before, for the run's record
};

// What a rank runs, and the tensors of its state.
struct RankPrograms {
  ProgramSet set;
  std::vector<StateTensor> tensors;
};

struct PreparedRun {
  // `ranks`: all of the run; it must outlive this object.
  PreparedRun(const Config& configured, Communicator& ranks, RankLaunch launched);

  bool is_first() const { return world.rank() == 0; }
  // Nothing is trained or saved.
  bool only_validates() const { return launch.record.only_validates; }
  // Whether this is rank 0 of a launch that has not failed yet.
  bool is_first_launch() const { return is_first() && launch.record.generation == 1; }
  const RunLock* checkpoint_lock() const { return locks ? &locks->checkpoints() : nullptr; }

  const Config config;
  Communicator& world;
  const RankLaunch launch;
  const LostPages lost_pages;           // of the corpora, which are mapped
  const std::optional<RunLocks> locks;  // on rank 0 only
  const std::unique_ptr<RunLog> log;    // on rank 0; else null
  RunInputs inputs;
  Beginning beginning;
  const ParallelLayout layout;
  const std::unique_ptr<Device> device;
  RankGroups groups;
  const SkippedBatches skipped;  // when the run begins
  const StepSpec spec;
  const double ceiling_flops;  // of all ranks
  const RankPrograms programs;
};

// The matrix-product rate of all ranks. Collective, and nothing else should run meanwhile.
double measure_ceiling(const PreparedRun& run);

}  // namespace skein

// What one rank of a pipeline stage holds, sends and takes time for: read off its programs. Ranks
// of a stage have the same programs but for offsets, so one stands for all of them.
//
// Seconds  of a program: every op by skein/schedule/estimate.h, every collective by
//          skein/schedule/collective_seconds.h with the group's ranks where the mesh puts them.
//          What the program starts and waits for later (passes/overlap.h) is `hideable`, all other
//          collectives are `blocking`. Between stages, what is sent is the schedule's to time
//          (skein/schedule/simulate.h).
// Bytes    of the stage's rank that stores and holds most: the first one on every other axis
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "skein/compile/step_programs.h"
#include "skein/compile/wire.h"
#include "skein/schedule/collective_seconds.h"
#include "skein/schedule/estimate.h"

namespace skein {

struct ProgramSeconds {
  double compute = 0;
  double blocking = 0;
  double hideable = 0;
  double last_hideable = 0;  // of the one that is started last
  double transfer = 0;       // of what the program sends to another stage
};

// Prices programs of a mesh on hardware.
class Pricing {
 public:
  Pricing(const Hardware& hardware, const Mesh& mesh, DType dtype);

  double seconds(const Message& message) const;
  // For one run; adds the seconds of each collective, `times` times, to `collectives`.
  ProgramSeconds program(const Program& program, int64_t rank, int64_t times,
                         std::map<WireKey, double>& collectives) const;

  const Hardware& hardware() const { return hardware_; }

 private:
  Hardware hardware_;
  HardwareRates rates_;
  Mesh mesh_;
  std::map<std::string, GroupPlace, std::less<>> places_;
};

struct ChunkPlan {
  int64_t chunk = 0;  // of the model
  ProgramSeconds forward, backward;
  ProgramSeconds last_backward;  // of the last micro-batch
};

struct StagePlan {
  int64_t stage = 0;
  ArenaBytes arena_bytes{};
  std::array<bool, kNumArenas> on_host{};
  int64_t snapshot_bytes = 0;  // host memory that saving needs
  int64_t loader_bytes = 0;    // batches made ahead
  int64_t process_bytes = 0;   // estimated: skein/plan/process_bytes.h
  // Of the stage's ranks from this one on, as many as share its node: what differs between them.
  std::vector<int64_t> rank_snapshot_bytes;
  int64_t checkpoint_bytes = 0;  // of the stage's weights and optimizer state, whole
  std::vector<ChunkPlan> chunks;
  ProgramSeconds update;  // with what joins the sums of several virtual ranks
  Wire wire;              // a step's, of the rank that sends most
  std::map<WireKey, double> collective_seconds;

  int64_t device_bytes() const;  // of the device's arenas
  int64_t host_bytes() const;    // of arenas in host memory, snapshot and loader
  int64_t total_bytes() const { return device_bytes() + host_bytes(); }  // exact: no process_bytes
};

// Of the stage of the spec's rank, which is the first one of it on every other axis.
StagePlan plan_stage(const StepSpec& spec, const TrainingGraphs& graphs, const KernelTable& kernels,
                     const Pricing& pricing);

// Of the batches that the loader makes ahead.
int64_t loader_bytes(const StepSpec& spec);

// What saving needs on each of `num_ranks` ranks of the stage, from the spec's on.
std::vector<int64_t> rank_snapshot_bytes(const StepSpec& spec, const TrainingGraphs& graphs,
                                         int64_t num_ranks);

// Of the stage's ranks, what the one that sends most sends in a step.
Wire largest_wire(const ProgramSet& programs, const ProgramRuns& runs);

}  // namespace skein

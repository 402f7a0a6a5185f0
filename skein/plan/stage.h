// What one rank of a pipeline stage holds, sends and spends, derived from its programs. Ranks of a
// stage have the same programs but for offsets, so one represents them all; where data ranks have
// unequal shares of the batch, one of each share does.
//
// Seconds  of a program: every op by skein/schedule/estimate.h, every collective by
//          skein/schedule/collective_seconds.h with the group's ranks placed as on the mesh.
//          Of a collective that forward or backward starts and waits for
//          (passes/overlap/overlap_layers.h) `blocking` is what the work in between does not hide.
//          Other asynchronous ones (passes/overlap/overlap.h) are `hideable`, the rest is
//          `blocking`. Transfers between stages are timed by the schedule
//          (skein/schedule/simulate.h).
// Bytes    of the rank of the stage that stores most: the first one on every other axis, of those
//          with the largest share
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "skein/compile/step_programs.h"
#include "skein/compile/wire_use.h"
#include "skein/schedule/collective_seconds.h"
#include "skein/schedule/estimate.h"

namespace skein {

struct ProgramSeconds {
  double compute = 0;
  double blocking = 0;
  double hideable = 0;
  double last_hideable = 0;  // of the one that starts last
  double transfer = 0;       // for sending to another stage
};

// Predicts times of programs of a mesh on given hardware.
class Pricing {
 public:
  Pricing(const Hardware& hardware, const Mesh& mesh, DType dtype);

  double seconds(const WireMessage& message) const;
  // The seconds of one run. Adds the seconds of each collective, `times` times, to `collectives`.
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
  ProgramSeconds last_backward;  // for the last micro-batch
  ProgramSeconds pair;           // backward and the forward of the next micro-batch
};

struct StagePlan {
  int64_t stage = 0;
  ArenaBytes arena_bytes{};
  std::array<bool, kNumArenas> on_host{};
  int64_t snapshot_bytes = 0;  // host memory that saving needs
  int64_t loader_bytes = 0;    // batches loaded ahead
  int64_t process_bytes = 0;   // estimated: skein/plan/process_bytes.h
  // The snapshots of the ranks from this one on that share its node; only these differ between
  // ranks.
  std::vector<int64_t> rank_snapshot_bytes;
  int64_t checkpoint_bytes = 0;  // all ranks' weights and optimizer state of the stage
  std::vector<ChunkPlan> chunks;
  ProgramSeconds update;  // includes adding the sums of several virtual ranks
  Wire wire;              // of a step, on the rank that sends most
  std::map<WireKey, double> collective_seconds;
  int64_t virtual_ranks = 1;              // that it hosts
  std::vector<StagePlan> smaller_shares;  // ranks that host fewer, one of each number

  int64_t device_bytes() const;  // of the device's arenas
  int64_t host_bytes() const;    // arenas in host memory, snapshot and loader
  int64_t total_bytes() const { return device_bytes() + host_bytes(); }  // exact: no process_bytes
};

// Plans the stage of the spec's rank, which must be the first of it on every axis but "dp".
// Without checks for a sketch: `wire` and `checkpoint_bytes` are left out, too.
StagePlan plan_stage(const StepSpec& spec, const TrainingGraphs& graphs, const KernelTable& kernels,
                     const Pricing& pricing, Checks checks = Checks::kAll);

// Bytes of the batches that are loaded ahead.
int64_t loader_bytes(const StepSpec& spec);

// The snapshot bytes of `num_ranks` ranks of the spec's stage, beginning with `first_rank`.
std::vector<int64_t> rank_snapshot_bytes(const StepSpec& spec, const TrainingGraphs& graphs,
                                         int64_t first_rank, int64_t num_ranks);

// What the rank of the stage that sends most sends in a step.
Wire largest_wire(const ProgramSet& programs, const ProgramRuns& runs);

}  // namespace skein

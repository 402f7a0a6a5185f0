// The batch script with which Slurm runs a configuration: one `skein train` a node, the supervisor
// of its machine.
//
// What ends `skein train`, and what the script makes of it (skein/base/ending.h):
//   0, 2    the job ends with that code
//   75      it saved because SIGUSR1 came `grace_s` before the time is up: the job is requeued
//   others  it is started again on the same nodes, up to `retries` times, 1, 2, 4, ... s later
// A node that is lost is Slurm's to notice: it requeues the job, or, where `min_nodes` are fewer
// than `max_nodes`, lets it go on with the others. scancel and preemption end the script with
// SIGTERM, and it requeues nothing.
//
// Errors  kUsage for what a line of #SBATCH cannot hold, a time that is none, or one too short to
//         make progress
// Source  sbatch(1), srun(1), scontrol(1) of Slurm 22.05
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct SlurmJob {
  std::string name;
  int64_t min_nodes = 1, max_nodes = 1;
  int64_t cpus_per_node = 1;
  int64_t gpus_per_node = 0;         // 0: asks for none
  std::string time;                  // as sbatch --time takes it; empty: the partition's
  std::vector<std::string> options;  // further options of sbatch, each "--name=value"
  int64_t grace_s = 120;
  int64_t retries = 3;
  fs::path working_dir;
  fs::path run_dir;                  // of one run; of a sweep, the folder of its runs' folders
  std::vector<std::string> command;  // skein train CONFIG.toml ...
  // Of a sweep: what each run adds to the command. Empty: one run.
  std::vector<std::vector<std::string>> tasks;
  int64_t at_most = 0;  // runs of a sweep at a time; 0: as many as fit
};

std::string slurm_script(const SlurmJob& job);

// The folder of run `index` of a sweep, `run_dir`/0007.
fs::path sweep_run_dir(const fs::path& run_dir, size_t index);

// Seconds of a time as Slurm writes it: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours[:minutes[:seconds]]. Throws Error{kUsage} for another text.
int64_t slurm_seconds(const std::string& time);

}  // namespace skein

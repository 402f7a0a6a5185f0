// Which process of a run this one is, as its launcher says in the environment.
//
// Launchers, in the order in which they are asked; the innermost one wins:
//   skein      SKEIN_RANK, SKEIN_SIZE, SKEIN_LOCAL_RANK, SKEIN_LOCAL_SIZE, SKEIN_START_ID: what
//              `launch.workers` sets (workers.h), and what any other launcher can set
//   torchrun   TORCHELASTIC_RUN_ID with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
//   Open MPI   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//   Slurm      SLURM_STEP_ID, SLURM_PROCID, …: inside a step of more than one task. A script under
//              sbatch, a shell under salloc and a step of one task are no place.
// RANK and WORLD_SIZE alone are refused: some platforms (PyTorchJob) set them once per node, and to
// take them for processes, or to ignore them, would train something else than what was meant.
//
// start_id  the same on every rank and another one at every start, restarts by the launcher
//           included; letters, digits, '-' and '_'. SKEIN_START_ID replaces what a launcher says of
//           the run where that does not suffice.
// Errors    Error{kUsage} naming variable, value and what was expected
// Source    torchrun: torch/distributed/run.py. Slurm: srun(1), OUTPUT ENVIRONMENT VARIABLES. Open
//           MPI: mpirun(1).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "skein/base/file.h"

namespace skein {

struct RankInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes on this machine
  int local_size = 1;
  std::string launcher;  // "skein", "torchrun", "Open MPI" or "Slurm"
  std::string start_id;
  int64_t parent_pid = 0;  // of the run_workers that started this process; 0: somebody else did
};

// As std::getenv: the value of a variable, or null.
using ReadVariable = std::function<const char*(const char* name)>;

// Nothing: no launcher started this process.
std::optional<RankInfo> rank_info_from_environment(const ReadVariable& read);
std::optional<RankInfo> rank_info_from_environment();

// `workers` is launch.workers: with a launcher it is 1, or what the launcher started here.
void check_workers(const RankInfo& rank_info, int64_t workers);

// <rendezvous, or run_dir/rendezvous>/<start_id>. Errors kUnsupported where `rendezvous` is no
// folder (redis://…).
fs::path rendezvous_folder(const std::string& rendezvous, const fs::path& run_dir,
                           const std::string& start_id);

// <run_dir>/logs/rank-00003.log
fs::path rank_log(const fs::path& run_dir, int rank);

}  // namespace skein

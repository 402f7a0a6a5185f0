// The rank of this process in its run, from environment variables that its launcher sets.
//
// Launchers, in the order in which they are tried; the innermost one wins:
//   skein      SKEIN_RANK, SKEIN_SIZE, SKEIN_LOCAL_RANK, SKEIN_LOCAL_SIZE, SKEIN_START_ID: set by
//              `launch.workers` (workers.h), or by any other launcher
//   torchrun   TORCHELASTIC_RUN_ID with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
//   Open MPI   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//   Slurm      SLURM_STEP_ID, SLURM_PROCID, ...: inside a step of more than one task. A script
//              under sbatch, a shell under salloc and a step of one task are no ranks.
// RANK and WORLD_SIZE alone are refused: some platforms (PyTorchJob) set them once per node, so
// neither using nor ignoring them would be safe.
//
// start_id  the same on every rank and different at every start, including restarts by the
//           launcher; letters, digits, '-' and '_'. SKEIN_START_ID replaces the launcher's identity
//           of the run where that is not unique.
// Errors    Error{kUsage} naming variable, value and what was expected
// Source    torchrun: torch/distributed/run.py. Slurm: srun(1), OUTPUT ENVIRONMENT VARIABLES. Open
//           MPI: mpirun(1).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

struct RankInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // index among the run's processes on this machine
  int local_size = 1;
  std::string launcher;  // "skein", "torchrun", "Open MPI" or "Slurm"
  std::string start_id;
  int64_t parent_pid = 0;  // the process whose run_workers started this one; 0: none
  int64_t generation = 1;  // how often that process has started workers (supervise/records.h)
  int heartbeats = -1;     // the inherited file of its HeartbeatPage; -1: none
  int orders = -1;         // the inherited socket of worker_orders.h; -1: none
  int standard_output = -1, standard_error = -1;  // that process's, inherited with the socket
  std::string replicas;     // replica/worker_place.h; empty: no copies are kept in memory
  int64_t launched_ms = 0;  // when that process began, of CLOCK_BOOTTIME; 0: not known
  int64_t waited_ms = 0;    // how long of the time since then it waited for other machines
};

// Like std::getenv: the value of a variable, or null.
using ReadVariable = std::function<const char*(const char* name)>;

// nullopt: no launcher started this process.
std::optional<RankInfo> rank_info_from_environment(const ReadVariable& read);
std::optional<RankInfo> rank_info_from_environment();

// Checks launch.workers: under a launcher it must be 1, or the number of processes started here;
// and launch.nodes, which means supervisors: where a launcher started the ranks it must be "1".
void check_workers(const RankInfo& rank_info, int64_t workers, const std::string& nodes);

// The folder <rendezvous, or run_dir/rendezvous>/<start_id>, in which a worker tells its parent why
// it failed; in run_dir where `rendezvous` is etcd.
fs::path rendezvous_folder(const std::string& rendezvous, const fs::path& run_dir,
                           const std::string& start_id);

// <run_dir>/logs/rank-00003.log
fs::path rank_log(const fs::path& run_dir, int rank);

}  // namespace skein

#include "skein/launch/workers.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "skein/base/exception.h"
#include "skein/base/heartbeat.h"
#include "skein/base/log.h"
#include "skein/launch/exit_codes.h"
#include "skein/launch/node_supervisor.h"
#include "skein/launch/worker_failure.h"

namespace skein {
namespace {

int failed_as_worker(const RankInfo& rank_info, const fs::path& rendezvous_folder,
                     const Error& error) {
  if (rank_info.rank == 0) {  // the parent prints the cause on the shared terminal
    log::error_to_file(error.what());
  } else {
    log::error("{}", error.what());
  }
  try {
    report_failure(rendezvous_folder, rank_info.rank, error);
  } catch (const std::exception& problem) {
    log::error("cannot tell the parent: {}", problem.what());
  }
  return exit_code_of(error);
}

}  // namespace

int run_workers(const WorkerLaunch& launch) {
  log::info("starting {} {}; their logs: {}", launch.num_workers,
            launch.num_workers == 1 ? "worker" : "workers", (launch.run_dir / "logs").string());
  return NodeSupervisor(launch).run();
}

int run_as_worker(const RankInfo& rank_info, const fs::path& rendezvous_folder,
                  const std::function<int()>& body) {
  if (rank_info.parent_pid == 0) {
    int code = kExitFailed;
    try {
      code = body();
    } catch (const std::exception& exception) {
      log::error_to_file(to_error(exception).what());  // the caller prints it on the terminal
      throw;
    }
    std::error_code ignored;  // kept on failure: other ranks read the cause there
    if (rank_info.rank == 0) fs::remove_all(rendezvous_folder, ignored);
    return code;
  }
  try {
    die_with_parent(rank_info.parent_pid);
    if (rank_info.heartbeats >= 0) {
      heartbeat::attach(FileDescriptor(rank_info.heartbeats), rank_info.local_rank);
    }
    return body();
  } catch (const std::exception& exception) {
    return failed_as_worker(rank_info, rendezvous_folder, to_error(exception));
  }
}

void die_with_parent(int64_t parent_pid) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    fail(ErrorCode::kIo, "cannot tie this worker to its parent: {}", errno_text(errno));
  }
  if (::getppid() != parent_pid) {  // the parent ended before prctl
    fail(ErrorCode::kPeerLost, "process {}, which started this worker, has ended", parent_pid);
  }
}

}  // namespace skein

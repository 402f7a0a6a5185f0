#include "skein/launch/node/workers.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "skein/base/ending.h"
#include "skein/base/exception.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/launch/node/node_supervisor.h"
#include "skein/launch/node/worker_failure.h"
#include "skein/launch/node/worker_orders.h"

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

void attach_to_parent(const RankInfo& info) {
  die_with_parent(info.parent_pid);
  if (info.heartbeats >= 0) {
    heartbeat::attach(FileDescriptor(info.heartbeats), info.local_rank);
  }
  for (const int file : {info.orders, info.standard_output, info.standard_error}) {
    if (file >= 0) ::fcntl(file, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace

int run_workers(const WorkerLaunch& launch) {
  log::info("starting {}; their logs: {}", counted(launch.num_workers, "worker"),
            (launch.run_dir / "logs").string());
  return NodeSupervisor(launch).run();
}

int run_as_worker(const RankInfo& rank_info, const std::string& rendezvous, const fs::path& run_dir,
                  const std::function<int(const RankInfo&)>& body) {
  if (rank_info.parent_pid == 0) {
    int code = kExitFailed;
    try {
      code = body(rank_info);
    } catch (const std::exception& exception) {
      log::error_to_file(to_error(exception).what());  // the caller prints it on the terminal
      throw;
    }
    std::error_code ignored;  // kept on failure: other ranks read the cause there
    const fs::path folder = rendezvous_folder(rendezvous, run_dir, rank_info.start_id);
    if (rank_info.rank == 0) fs::remove_all(folder, ignored);
    return code;
  }
  RankInfo info = rank_info;
  for (bool is_attached = false;; is_attached = true) {
    int code = kExitFailed;
    bool stays = false;
    try {
      if (!is_attached) attach_to_parent(info);
      code = body(info);
      stays = code == kExitRegroup || code == kExitRequeue;
    } catch (const std::exception& exception) {
      const Error error = to_error(exception);
      const fs::path folder = rendezvous_folder(rendezvous, run_dir, info.start_id);
      code = failed_as_worker(info, folder, error);
      stays = error.code() == ErrorCode::kPeerLost;
    }
    if (!stays || info.orders < 0) return code;
    try {
      const std::optional<RankInfo> next = next_generation(info, code, run_dir);
      if (!next) return code;
      info = *next;
    } catch (const std::exception& exception) {  // the supervisor sees the process end
      log::error("this worker cannot take part in the next generation: {}", exception.what());
      return kExitFailed;
    }
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

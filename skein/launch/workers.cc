#include "skein/launch/workers.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <random>
#include <utility>

#include "skein/base/exception.h"
#include "skein/base/log.h"
#include "skein/launch/cores.h"
#include "skein/launch/exit_codes.h"
#include "skein/launch/worker_failure.h"
#include "skein/launch/worker_process.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks the signals that the parent waits for, from before the first worker starts until after the
// last one ends.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&waited_);
    for (const int signal : {SIGCHLD, SIGTERM, SIGUSR1, SIGINT}) sigaddset(&waited_, signal);
    struct sigaction hang_up {};
    sigaction(SIGHUP, nullptr, &hang_up);
    // Under nohup SIGHUP stays ignored.
    if (hang_up.sa_handler != SIG_IGN) sigaddset(&waited_, SIGHUP);
    sigprocmask(SIG_BLOCK, &waited_, &former_);
    // If SIGCHLD is ignored, as some launchers leave it, the system discards the status of
    // children.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &former_child_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() {
    // Takes pending signals, which would end this process when they are unblocked.
    while (wait(Clock::duration::zero()) != 0) {
    }
    sigaction(SIGCHLD, &former_child_, nullptr);
    sigprocmask(SIG_SETMASK, &former_, nullptr);
  }

  const sigset_t& former() const { return former_; }

  // Waits for the next signal; returns 0 after `timeout`.
  int wait(Clock::duration timeout) const {
    using std::chrono::nanoseconds;
    const int64_t ns = std::max<int64_t>(0, nanoseconds(timeout).count());
    const struct timespec limit = {ns / 1'000'000'000, ns % 1'000'000'000};
    return std::max(0, sigtimedwait(&waited_, nullptr, &limit));
  }

 private:
  sigset_t waited_, former_;
  struct sigaction former_child_;
};

std::string new_start_id() {
  const std::time_t now = std::time(nullptr);
  struct tm utc {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &utc);
  return fmt::format("{}-{:08x}", text, std::random_device()());
}

void make_folder(const fs::path& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) {
    fail(ErrorCode::kIo, "cannot create the folder {}: {}", path.string(), problem.message());
  }
}

// A folder that is removed when the run is over.
class RendezvousFolder {
 public:
  explicit RendezvousFolder(fs::path path) : path_(std::move(path)) { make_folder(path_); }
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  ~RendezvousFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Workers {
 public:
  explicit Workers(const WorkerLaunch& launch)
      : launch_(launch),
        start_id_(new_start_id()),
        folder_(rendezvous_folder(launch.rendezvous, launch.run_dir, start_id_)) {
    make_folder(launch.run_dir / "logs");
    workers_.reserve(static_cast<size_t>(launch.num_workers));
    for (int rank = 0; rank < launch.num_workers; ++rank) start(rank);
  }

  int run() {
    while (reap()) {
      if (const int signal = signals_.wait(time_left())) handle(signal);
      act_on_deadlines();
    }
    if (!failures_.empty()) {
      const WorkerFailure& cause = cause_of(failures_);
      if (!stopped_early_ || !cause.lost_peer) throw WorkerError(cause);
    }
    return stopped_ ? kExitRequeue : kExitDone;
  }

 private:
  void start(int rank) {
    WorkerProcess::Start start;
    start.arguments = launch_.arguments;
    start.environment = {fmt::format("SKEIN_RANK={}", rank),
                         fmt::format("SKEIN_SIZE={}", launch_.num_workers),
                         fmt::format("SKEIN_LOCAL_RANK={}", rank),
                         fmt::format("SKEIN_LOCAL_SIZE={}", launch_.num_workers),
                         fmt::format("SKEIN_START_ID={}", start_id_),
                         fmt::format("SKEIN_PARENT_PID={}", ::getpid())};
    const std::vector<int> cores = usable_cores();
    const int share = std::max(1, static_cast<int>(cores.size()) / launch_.num_workers);
    const bool told = launch_.threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr;
    const int threads = launch_.threads > 0 ? launch_.threads : share;
    if (!told) start.environment.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
    // A run that uses fewer threads than the machine has cores may share it with other programs, so
    // its workers are not bound.
    const bool whole_machine = !told && threads == share;
    const BoundToCores bound(whole_machine ? cores_of_worker(cores, rank, launch_.num_workers)
                                           : std::vector<int>{});
    if (rank > 0) start.output = rank_log(launch_.run_dir, rank);
    start.signal_mask = signals_.former();
    workers_.emplace_back(rank, start);
  }

  // Handles workers that have ended; returns whether any still runs.
  bool reap() {
    bool any_running = false;
    for (WorkerProcess& worker : workers_) {
      if (const std::optional<int> status = worker.poll()) ended(worker.rank(), *status);
      any_running |= worker.running();
    }
    return any_running;
  }

  void ended(int rank, int status) {
    const bool by_us = WIFSIGNALED(status) && ending_ &&
                       (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
    if (by_us) return;
    // Ctrl-C, or the end of the terminal, may reach a worker before this process.
    const bool stopped_by_signal =
        WIFSIGNALED(status) &&
        (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGHUP ||
         (asked_to_stop_ && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGUSR1)));
    if (stopped_by_signal) {
      stopped_ = stopped_early_ = true;  // nothing to save before training
      end_others();
      return;
    }
    stopped_ |= WIFEXITED(status) && WEXITSTATUS(status) == kExitRequeue;
    const auto failure = worker_failure(rank, status, read_failure(folder_.path(), rank),
                                        rank_log(launch_.run_dir, rank));
    if (!failure) return;
    failures_.push_back(*failure);
    if (!failure->lost_peer) {
      end_others();
    } else if (!ending_ && !settle_) {
      settle_ = grace_from_now();
    }
  }

  void handle(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGINT && std::exchange(interrupted_, true)) {
      interrupt();
      return;
    }
    asked_to_stop_ = true;
    // Workers on a terminal get Ctrl-C themselves, and a second SIGINT would end them at once.
    send_all(signal == SIGINT ? SIGTERM : signal);
  }

  void interrupt() {
    failures_.insert(failures_.begin(), {.rank = 0,
                                         .code = ErrorCode::kPeerLost,
                                         .message = "interrupted twice: every worker was ended at "
                                                    "once, without saving"});
    ending_ = true;
    send_all(SIGKILL);
  }

  void act_on_deadlines() {
    const auto now = Clock::now();
    if (settle_ && now >= *settle_) end_others();
    if (kill_ && now >= *kill_) {
      send_all(SIGKILL);
      kill_.reset();
    }
  }

  // The time until the next deadline, or an hour where there is none.
  Clock::duration time_left() const {
    Clock::duration left = std::chrono::hours(1);
    for (const auto& deadline : {settle_, kill_}) {
      if (deadline) left = std::min(left, *deadline - Clock::now());
    }
    return left;
  }

  void end_others() {
    settle_.reset();
    if (std::exchange(ending_, true)) return;
    send_all(SIGTERM);
    kill_ = grace_from_now();
  }

  void send_all(int signal) const {
    for (const WorkerProcess& worker : workers_) worker.send(signal);
  }

  Clock::time_point grace_from_now() const {
    const std::chrono::duration<double> grace(launch_.grace_s);
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(grace);
  }

  const WorkerLaunch& launch_;
  const std::string start_id_;
  RendezvousFolder folder_;
  BlockedSignals signals_;
  std::vector<WorkerProcess> workers_;
  std::vector<WorkerFailure> failures_;  // in order of time
  bool stopped_ = false;                 // a worker stopped on request
  bool stopped_early_ = false;           // a worker was stopped before it handled signals
  bool asked_to_stop_ = false;
  bool interrupted_ = false;
  bool ending_ = false;                      // the remaining workers were told to end
  std::optional<Clock::time_point> settle_;  // waiting for the failure behind a lost peer
  std::optional<Clock::time_point> kill_;
};

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
  log::info("starting {} workers; their logs: {}", launch.num_workers,
            (launch.run_dir / "logs").string());
  return Workers(launch).run();
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

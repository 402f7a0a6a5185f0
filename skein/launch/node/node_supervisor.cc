#include "skein/launch/node/node_supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <random>
#include <sstream>
#include <utility>

#include "skein/base/exception.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/comm/gloo/network.h"
#include "skein/launch/exit_codes.h"
#include "skein/launch/node/stacks.h"
#include "skein/launch/place/replica_address.h"

namespace skein {
namespace {

// Between two looks at the heartbeats, in ms.
constexpr Millis kSample = 100;

// A machine that cannot be reached by others, or has no memory for it, trains without copies.
std::optional<ReplicaServer> replica_server(const WorkerLaunch& launch) {
  if (!launch.keeps_replicas) return std::nullopt;
  try {
    if (launch.membership.max_hosts == 1) {
      return std::optional<ReplicaServer>(std::in_place, launch.num_workers, "", "", ReplicaKey{});
    }
    return std::optional<ReplicaServer>(std::in_place, launch.num_workers,
                                        network_address(/*one_host=*/false), launch.host,
                                        replica_key(*launch.secret));
  } catch (const std::exception& error) {
    log::warn("no copies of the state are kept in memory: {}", error.what());
    return std::nullopt;
  }
}

SupervisorOptions supervisor_options(const WorkerLaunch& launch,
                                     const std::optional<ReplicaServer>& replicas) {
  SupervisorOptions options;
  if (replicas) options.replicas = replicas_text(replicas->endpoint().address);
  options.host = launch.host;
  options.succeeds = launch.succeeds;
  options.workers = launch.num_workers;
  options.membership = launch.membership;
  options.hang = launch.hang;
  options.stages = launch.stages;
  options.grace = static_cast<Millis>(launch.grace_s * 1000);
  return options;
}

// A worker says what it threw: what comes again at every start, what another attempt may mend.
Ending ending_of(const WorkerFailure& failure, int64_t generation) {
  switch (failure.code) {
    case ErrorCode::kPeerLost:
      return failure.lost_peer ? Ending::kLostPeer : Ending::kCrashed;
    case ErrorCode::kWrongBits:
      return Ending::kWrongBits;
    case ErrorCode::kNotFinite:
      return Ending::kNotFinite;
    case ErrorCode::kIo:
    case ErrorCode::kNoSpace:
      return Ending::kNoStorage;
    case ErrorCode::kBusy:
      return generation == 1 ? Ending::kInvalid : Ending::kNoStorage;
    case ErrorCode::kUsage:
      return Ending::kRefused;
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
      return Ending::kInvalid;
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      return Ending::kCrashed;
  }
  return Ending::kCrashed;
}

// That the check cannot be made says nothing of the machine.
void warn_unchecked(const std::string& why) {
  log::warn("this machine could not be checked, and trains all the same: {}", why);
}

// A copy beside the standard ones; of one that is closed, of nowhere.
FileDescriptor kept_open(int output) {
  FileDescriptor copy(::fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (copy.get() >= 0) return copy;
  const FileDescriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  copy = FileDescriptor(::fcntl(nowhere.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (copy.get() < 0) fail(ErrorCode::kIo, "cannot open /dev/null: {}", errno_text(errno));
  return copy;
}

std::string new_start_id() {
  const std::time_t now = std::time(nullptr);
  struct tm utc {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &utc);
  return fmt::format("{}-{:08x}", text, std::random_device()());
}

}  // namespace

void make_launch_folder(const fs::path& path) { make_folders(path); }

NodeSupervisor::NodeSupervisor(const WorkerLaunch& launch)
    : launch_(launch),
      start_id_(launch.start_id.empty() ? new_start_id() : launch.start_id),
      signals_(wake_signal()),
      replicas_(replica_server(launch)),
      supervisor_(supervisor_options(launch, replicas_)),
      store_(launch.membership.max_hosts == 1 ? memory_store() : shared_store(launch.store),
             wake_signal()),
      heartbeats_(launch.num_workers),
      output_(kept_open(STDOUT_FILENO)),
      error_output_(kept_open(STDERR_FILENO)) {
  make_launch_folder(launch.run_dir / "logs");
}

NodeSupervisor::~NodeSupervisor() { end_crew(); }

int NodeSupervisor::run() {
  looked_ = boot_millis();
  supervisor_.start(looked_);
  perform();
  while (!exit_) {
    const Millis now = boot_millis();
    const Millis until_tick = supervisor_.next_time() - now;
    const Millis patience = crew_ ? std::min(until_tick, kSample) : until_tick;
    if (const int signal = signals_.wait(patience)) handle(signal);
    reap();
    for (const StoreThread::Answer& answer : store_.take_answers()) hear(answer);
    sample_heartbeats();
    ask_awaited();
    count_waiting();
    supervisor_.tick(boot_millis());
    perform();
  }
  const bool failed = failure_ && crew_ && failure_generation_ == crew_->number;
  const bool failed_here = failed && !failure_->lost_peer && !interrupted_;
  end_crew();
  if (unsaved_since_ && launch_.on_unsaved_stop) launch_.on_unsaved_stop(*unsaved_since_);
  if (in_memory_alone_) {
    log::warn(
        "the run stops between two generations: what it did since the newest checkpoint may have "
        "been in memory alone, and is done again when it resumes");
  }
  if (exit_->exit_code == kExitDone) return kExitDone;
  if (exit_->exit_code == kExitRequeue) {
    // Workers that were asked to stop have said so themselves.
    if (failed || !stop_requested_) {
      log::warn("{}{}: the same command resumes from the newest checkpoint",
                failed ? failure_->message + "; " : "", exit_->message);
    }
    return kExitRequeue;
  }
  if (failed_here) {
    failure_->message = exit_->message;
    throw WorkerError(*failure_);
  }
  throw Error(exit_->exit_code == kExitUsage ? ErrorCode::kUsage : ErrorCode::kPeerLost,
              exit_->message);
}

// What is done may ask for more at once.
void NodeSupervisor::perform() {
  for (std::vector<Action> actions; !(actions = supervisor_.take_actions()).empty();) {
    for (const Action& action : actions) perform(action);
  }
}

void NodeSupervisor::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kExchange:
      store_.ask_to_exchange(action.call);
      break;
    case Action::Kind::kCreate:
      store_.ask_to_create(action.generation);
      break;
    case Action::Kind::kStartWorkers:
      start_crew(action.generation);
      break;
    case Action::Kind::kAskWorkers:
      ask_workers(action.signal);
      break;
    case Action::Kind::kDumpStacks:
      note_failure();
      write_stacks(action);
      break;
    case Action::Kind::kEndWorkers:
      note_failure();
      heartbeats_.is_over() = 1;
      send_all(SIGTERM);
      break;
    case Action::Kind::kKillWorkers:
      note_failure();
      send_all(SIGKILL);
      break;
    case Action::Kind::kCheckHost:
      start_check(action.check);
      break;
    case Action::Kind::kEndCheck:
      kill_check();
      break;
    case Action::Kind::kStraggler:
      log::warn("{}", action.text);
      if (launch_.on_straggler) launch_.on_straggler(action.straggler);
      break;
    case Action::Kind::kWrongBits:
      log::warn("wrong bits, {}: {}",
                action.persistent ? "persistent, so this machine is left out from here on"
                                  : "transient as far as is known, so the step is done again",
                action.text);
      if (launch_.on_wrong_bits) launch_.on_wrong_bits(action.text, action.persistent);
      break;
    case Action::Kind::kSay:
      log::info("{}", action.text);
      break;
    case Action::Kind::kExit:
      exit_ = Verdict{action.exit_code, action.text};
      break;
  }
}

void NodeSupervisor::start_check(int64_t number) {
  std::string problem;
  if (check_) {
    problem = "the check before has been killed and does not end";
  } else if (!launch_.check_arguments.empty()) {
    try {
      check_ = std::make_unique<HostCheck>(number, launch_.check_arguments, signals_.former());
      return;
    } catch (const std::exception& exception) {
      warn_unchecked(to_error(exception).what());
    }
  }
  supervisor_.host_checked(number, problem, boot_millis());
}

void NodeSupervisor::kill_check() {
  if (check_) check_->kill();
}

void NodeSupervisor::reap() {
  if (check_) {
    if (const std::optional<CheckOutcome> outcome = check_->poll()) {
      if (!outcome->unmade.empty()) warn_unchecked(outcome->unmade);
      const int64_t number = std::exchange(check_, nullptr)->number();
      supervisor_.host_checked(number, outcome->problem, boot_millis());
    }
  }
  if (!crew_) return;
  for (size_t index = 0; index < crew_->workers.size(); ++index) {
    const std::optional<int> status = crew_->workers[index].poll();
    if (!status) continue;
    sample_heartbeat(static_cast<int>(index));  // its last step, before its end
    ended(static_cast<int>(index), *status);
  }
}

void NodeSupervisor::ended(int index, int status) {
  const int rank = crew_->first_rank + index;
  const auto tell = [&](Ending ending, const std::string& message) {
    supervisor_.worker_ended(crew_->number, index, ending, message, boot_millis());
  };
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  // On a terminal, Ctrl-C and a hang-up may reach a worker before they reach this process.
  const bool is_stop = signal == SIGINT || signal == SIGHUP ||
                       (stop_requested_ && (signal == SIGTERM || signal == SIGUSR1));
  if (is_stop) return tell(Ending::kStoppedEarly, "stopped before it trained");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDone) return tell(Ending::kFinished, "");
  const bool regroups = WIFEXITED(status) && WEXITSTATUS(status) == kExitRegroup;
  const bool early = signal == SIGUSR2;  // before it knew how to save
  if (regroups || early) {
    in_memory_alone_ |= regroups && replicas_;
    return tell(Ending::kRegrouped, "");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitRequeue) {
    if (supervisor_.ends_workers()) return tell(Ending::kLostPeer, "it was asked to end");
    return tell(Ending::kStopped, "");
  }
  const bool out_of_memory =
      signal == SIGKILL && !supervisor_.ends_workers() && oom_kills() > crew_->oom_kills;
  note_failure();
  const std::optional<Error> report =
      signal == 0 ? read_failure(crew_->rendezvous, rank) : std::nullopt;
  const auto failure =
      worker_failure(rank, status, report, rank_log(launch_.run_dir, rank), out_of_memory);
  Ending ending =
      signal == SIGKILL || signal == SIGTERM ? Ending::kKilled : ending_of(*failure, crew_->number);
  if (out_of_memory) ending = Ending::kOutOfMemory;
  const bool is_news = !failure_ || failure_generation_ != crew_->number ||
                       (failure_->lost_peer && !failure->lost_peer);
  if (is_news && !(signal != 0 && ending == Ending::kKilled && supervisor_.ends_workers())) {
    failure_ = failure;
    failure_generation_ = crew_->number;
  }
  tell(ending, failure->message);
}

void NodeSupervisor::write_stacks(const Action& action) {
  failure_ = WorkerFailure{.rank = crew_->first_rank + action.worker,
                           .code = ErrorCode::kInternal,
                           .message = action.text};
  failure_generation_ = crew_->number;
  for (const WorkerProcess& worker : crew_->workers) {
    if (!worker.running()) continue;
    log::warn("the threads of rank {}, whose stacks are in its log:", worker.rank());
    std::istringstream threads(ask_for_stacks(worker.pid()));
    for (std::string line; std::getline(threads, line);) log::warn("{}", line);
  }
}

void NodeSupervisor::sample_heartbeats() {
  if (!crew_) return;
  heartbeats_.permitted_until() = supervisor_.permitted_until();
  for (size_t index = 0; index < crew_->workers.size(); ++index) {
    if (crew_->workers[index].running()) sample_heartbeat(static_cast<int>(index));
  }
}

// A worker that waits with a deadline of its own makes progress as long as that lasts.
void NodeSupervisor::sample_heartbeat(int index) {
  const Millis now = boot_millis();
  const HeartbeatSlot& slot = heartbeats_.slot(index);
  Crew::Seen& seen = crew_->seen[static_cast<size_t>(index)];
  const int64_t progress = slot.progress.load();
  if (std::exchange(seen.progress, progress) != progress) ++seen.told;
  supervisor_.heartbeat(crew_->number, index, seen.told, slot.step.load(),
                        slot.excused_until.load() > now, now);
  supervisor_.worked(crew_->number, index, slot.step.load(), slot.work_us.load(), now);
}

void NodeSupervisor::hear(const StoreThread::Answer& answer) {
  if (answer.view) view_ = *answer.view;
  if (!answer.problem.empty() && !std::exchange(store_failed_, true)) {
    log::warn("the rendezvous store does not answer: {}", answer.problem);
  } else if (answer.problem.empty() && std::exchange(store_failed_, false)) {
    log::info("the rendezvous store answers again");
  }
  const bool any_runs = crew_ && std::any_of(crew_->workers.begin(), crew_->workers.end(),
                                             [](const auto& worker) { return worker.running(); });
  // Training that is under way goes on for as long as it may without the store.
  if (answer.refuses && !any_runs && !exit_) exit_ = Verdict{kExitUsage, answer.problem};
  if (answer.of_exchange) {
    supervisor_.exchanged(answer.view, boot_millis());
  } else {
    supervisor_.created(answer.created, boot_millis());
  }
}

void NodeSupervisor::ask_awaited() {
  std::map<std::string, std::string> hosts;  // by address
  std::vector<std::string> addresses;
  for (const std::string& host : supervisor_.awaited()) {
    const HostRecord* record = view_.host(host);
    if (record == nullptr) continue;
    const ReplicaEndpoint endpoint = replica_endpoint(*record);
    if (endpoint.address.empty()) continue;
    hosts[endpoint.address] = host;
    addresses.push_back(endpoint.address);
  }
  for (const std::string& address : probe_.refused(addresses)) {
    log::info("{} is gone: nobody listens at {} any more", hosts.at(address), address);
    supervisor_.host_refuses(hosts.at(address), boot_millis());
  }
}

void NodeSupervisor::count_waiting() {
  const Millis now = boot_millis();
  if (supervisor_.is_waiting()) waited_ += now - looked_;
  looked_ = now;
}

// The first sign of it counts; a generation that was asked to stop has none.
void NodeSupervisor::note_failure() {
  if (!known_) known_ = boot_millis();
}

}  // namespace skein

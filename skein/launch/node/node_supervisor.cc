#include "skein/launch/node/node_supervisor.h"

#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>
#include <vector>

#include "skein/base/ending.h"
#include "skein/base/exception.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/launch/place/replica_address.h"

namespace skein {
namespace {

// Between two looks at the heartbeats, in ms.
constexpr Millis kSample = 100;

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

// That the check cannot be made says nothing of the machine.
void warn_unchecked(const std::string& why) {
  log::warn("this machine could not be checked, and trains all the same: {}", why);
}

}  // namespace

NodeSupervisor::NodeSupervisor(const WorkerLaunch& launch)
    : launch_(launch),
      signals_(wake_signal()),
      crew_(launch_, signals_.former()),
      supervisor_(supervisor_options(launch, crew_.replicas())),
      store_(launch.membership.max_hosts == 1 ? memory_store() : shared_store(launch.store),
             wake_signal()) {
  make_folders(launch.run_dir / "logs");
}

NodeSupervisor::~NodeSupervisor() { end_crew(); }

int NodeSupervisor::run() {
  looked_ = boot_millis();
  supervisor_.start(looked_);
  perform();
  while (!exit_) {
    const Millis now = boot_millis();
    const Millis until_tick = supervisor_.next_time() - now;
    const Millis patience = crew_.generation() ? std::min(until_tick, kSample) : until_tick;
    if (const int signal = signals_.wait(patience)) handle(signal);
    reap();
    for (const StoreThread::Answer& answer : store_.take_answers()) hear(answer);
    sample_heartbeats();
    ask_awaited();
    count_waiting();
    supervisor_.tick(boot_millis());
    perform();
  }
  return end_run();
}

int NodeSupervisor::end_run() {
  const Crew::Generation* generation = crew_.generation();
  const WorkerFailure* known = generation ? failure_.of(generation->number) : nullptr;
  const std::optional<WorkerFailure> failure = known ? std::optional(*known) : std::nullopt;
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
    if (failure || !stops_.any()) {
      log::warn("{}{}: the same command resumes from the newest checkpoint",
                failure ? failure->message + "; " : "", exit_->message);
    }
    return kExitRequeue;
  }
  if (failure && !failure->lost_peer() && !stops_.is_interrupted()) {
    WorkerFailure here = *failure;
    here.message = exit_->message;
    throw WorkerError(here);
  }
  throw Error(error_code_of_exit(exit_->exit_code, ErrorCode::kPeerLost), exit_->message);
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
      crew_.ask(action.signal);
      break;
    case Action::Kind::kDumpStacks:
      failure_.notice(boot_millis());
      write_stacks(action);
      break;
    case Action::Kind::kEndWorkers:
      failure_.notice(boot_millis());
      crew_.ask_to_end();
      break;
    case Action::Kind::kKillWorkers:
      failure_.notice(boot_millis());
      crew_.send(SIGKILL);
      break;
    case Action::Kind::kCheckHost:
      start_check(action.check);
      break;
    case Action::Kind::kEndCheck:
      if (check_) check_->kill();
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

void NodeSupervisor::start_crew(const GenerationRecord& generation) {
  end_crew();
  in_memory_alone_ = false;
  crew_.begin(generation, std::exchange(waited_, 0));
  say_that_it_begins(generation);
  try {
    crew_.start(generation, view_, supervisor_.permitted_until());
    const std::vector<pid_t> ids = crew_.process_ids();
    log::info("{} {}", ids.size() == 1 ? "the worker is process" : "the workers are processes",
              fmt::join(ids, ", "));
  } catch (const std::exception& exception) {
    const Error error = to_error(exception);
    log::error("{}", error.what());
    crew_.send(SIGKILL);
    for (int index = crew_.num_started(); index < launch_.num_workers; ++index) {
      supervisor_.worker_ended(generation.number, index, Ending::kNoStorage, error.what(),
                               boot_millis());
    }
  }
}

void NodeSupervisor::say_that_it_begins(const GenerationRecord& generation) {
  const Crew::Generation& begun = *crew_.generation();
  if (generation.number > 1) {
    const WorkerFailure* failure = failure_.of(generation.number - 1);
    if (failure != nullptr && !failure->lost_peer() && launch_.on_failure) {
      launch_.on_failure(*failure);
    }
    log::warn("{}; generation {} continues with {} on {}",
              generation.failure.empty() ? "machines have changed" : generation.failure,
              generation.number, counted(begun.size, "rank"),
              counted(static_cast<int64_t>(generation.members.size()), "machine"));
  }
  const Millis known = failure_.take_age(boot_millis());
  if (launch_.on_generation) {
    launch_.on_generation({generation, begun.leads(), known, begun.waited});
  }
}

void NodeSupervisor::end_crew() {
  if (crew_.generation() == nullptr) return;
  const Crew::Generation ended = *crew_.generation();
  crew_.end();
  if (!ended.leads() || !launch_.ranks_meet) return;
  if (exit_) {
    remove_place(*launch_.ranks_meet, ended.start_id);
  } else {
    store_.ask_to_remove(launch_.ranks_meet, ended.start_id);
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

void NodeSupervisor::poll_check() {
  if (!check_) return;
  const std::optional<CheckOutcome> outcome = check_->poll();
  if (!outcome) return;
  if (!outcome->unmade.empty()) warn_unchecked(outcome->unmade);
  const int64_t number = std::exchange(check_, nullptr)->number();
  supervisor_.host_checked(number, outcome->problem, boot_millis());
}

void NodeSupervisor::reap() {
  poll_check();
  for (int index = 0; index < crew_.num_started(); ++index) {
    const std::optional<int> status = crew_.poll(index);
    if (!status) continue;
    sample_heartbeat(index);  // its last step, before its end
    ended(index, *status);
  }
}

void NodeSupervisor::ended(int index, int status) {
  const Crew::Generation& generation = *crew_.generation();
  const int rank = generation.first_rank + index;
  const auto tell = [&](Ending ending, const std::string& message) {
    supervisor_.worker_ended(generation.number, index, ending, message, boot_millis());
  };
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  // On a terminal, Ctrl-C and a hang-up may reach a worker before they reach this process.
  const bool is_stop = signal == SIGINT || signal == SIGHUP ||
                       (stops_.any() && (signal == SIGTERM || signal == SIGUSR1));
  if (is_stop) return tell(Ending::kStoppedEarly, "stopped before it trained");
  // SIGUSR2 came before it knew how to save.
  const Ending ending = signal == 0         ? ending_of_exit(WEXITSTATUS(status))
                        : signal == SIGUSR2 ? Ending::kRegrouped
                                            : Ending::kCrashed;
  if (ending == Ending::kRegrouped) in_memory_alone_ |= signal == 0 && crew_.replicas();
  if (ending == Ending::kStopped && supervisor_.ends_workers()) {
    return tell(Ending::kLostPeer, "it was asked to end");
  }
  if (was_asked_for(ending)) return tell(ending, "");
  const bool out_of_memory =
      signal == SIGKILL && !supervisor_.ends_workers() && oom_kills() > generation.oom_kills;
  failure_.notice(boot_millis());
  const std::optional<Error> report =
      signal == 0 ? read_failure(generation.rendezvous, rank) : std::nullopt;
  const WorkerFailure failure =
      worker_failure(rank, status, report, rank_log(launch_.run_dir, rank), out_of_memory,
                     /*is_first=*/generation.number == 1);
  const bool by_us = failure.ending == Ending::kKilled && supervisor_.ends_workers();
  if (!by_us) failure_.add(failure, generation.number);
  tell(failure.ending, failure.message);
}

void NodeSupervisor::write_stacks(const Action& action) {
  const Crew::Generation& generation = *crew_.generation();
  failure_.set({.rank = generation.first_rank + action.worker,
                .ending = Ending::kHung,
                .message = action.text},
               generation.number);
  crew_.write_stacks();
}

void NodeSupervisor::handle(int signal) {
  if (signal == SIGCHLD || signal == wake_signal()) return;
  const Millis now = boot_millis();
  const StopRequests::Asks asks = stops_.hear(signal, now);
  if (asks == StopRequests::Asks::kNothing) return;
  const bool at_once = asks == StopRequests::Asks::kEndAtOnce;
  const int64_t saved = crew_.saved_step();
  supervisor_.asked_to_stop(signal, at_once, now);
  perform();
  if (at_once && exit_) {
    unsaved_since_ = saved;
    exit_->message += saved > 0 ? fmt::format("; nothing was saved since step {}", saved)
                                : std::string("; nothing was saved so far");
  }
}

void NodeSupervisor::sample_heartbeats() {
  if (crew_.generation() == nullptr) return;
  crew_.permit_until(supervisor_.permitted_until());
  for (int index = 0; index < crew_.num_started(); ++index) {
    if (crew_.runs(index)) sample_heartbeat(index);
  }
}

void NodeSupervisor::sample_heartbeat(int index) {
  const Millis now = boot_millis();
  const int64_t generation = crew_.generation()->number;
  const Crew::Heartbeat beat = crew_.heartbeat(index, now);
  supervisor_.heartbeat(generation, index, beat.progress, beat.step, beat.waits, now);
  supervisor_.worked(generation, index, beat.step, beat.work_us, now);
}

void NodeSupervisor::hear(const StoreThread::Answer& answer) {
  if (answer.view) view_ = *answer.view;
  if (!answer.problem.empty() && !std::exchange(store_failed_, true)) {
    log::warn("the rendezvous store does not answer: {}", answer.problem);
  } else if (answer.problem.empty() && std::exchange(store_failed_, false)) {
    log::info("the rendezvous store answers again");
  }
  // Training that is under way goes on for as long as it may without the store.
  if (answer.refuses && !crew_.any_runs() && !exit_) exit_ = Verdict{kExitUsage, answer.problem};
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

}  // namespace skein

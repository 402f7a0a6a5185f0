// The workers of a generation on this machine: how they are started and asked to stop, and what is
// left of them.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "skein/base/exception.h"
#include "skein/base/machine/cores.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/launch/node/node_supervisor.h"
#include "skein/launch/node/worker_cores.h"
#include "skein/launch/place/replica_address.h"

namespace skein {
namespace {

// So many starts in a row may go on from memory without a new step: what comes again at every one
// may lie in the copy.
constexpr int kTrustedAttempts = 2;

// So long after the first SIGINT another one is the first one again, in ms: `timeout -s INT` sends
// it to a process and to its group.
constexpr Millis kSameInterrupt = 1000;

void clear(HeartbeatSlot& slot) {
  slot.progress = slot.step = slot.excused_until = slot.saved = slot.passed_on = slot.work_us = 0;
  slot.stored = 0;
}

Millis launched_ms() { return static_cast<Millis>(process_start_seconds() * 1000); }

}  // namespace

void NodeSupervisor::start_crew(const GenerationRecord& generation) {
  end_crew();
  in_memory_alone_ = false;
  crew_.emplace();
  Crew& crew = *crew_;
  crew.number = generation.number;
  crew.first_rank = generation.first_rank(launch_.host);
  crew.size = generation.num_ranks();
  crew.start_id = fmt::format("{}-g{}", start_id_, generation.number);
  crew.rendezvous = rendezvous_folder(launch_.rendezvous, launch_.run_dir, crew.start_id);
  crew.oom_kills = oom_kills();
  crew.waited = std::exchange(waited_, 0);
  if (generation.number > 1) {
    if (failure_ && failure_generation_ == generation.number - 1 && !failure_->lost_peer &&
        launch_.on_failure) {
      launch_.on_failure(*failure_);
    }
    log::warn("{}; generation {} continues with {} ranks on {} {}",
              generation.failure.empty() ? "machines have changed" : generation.failure,
              generation.number, crew.size, generation.members.size(),
              generation.members.size() == 1 ? "machine" : "machines");
  }
  const Millis now = boot_millis();
  if (launch_.on_generation) {
    launch_.on_generation(
        {generation, crew.first_rank == 0, known_ ? now - *known_ : 0, crew.waited});
  }
  known_.reset();
  try {
    make_launch_folder(crew.rendezvous);
    for (int index = 0; index < launch_.num_workers; ++index) clear(heartbeats_.slot(index));
    heartbeats_.is_over() = heartbeats_.stop_signal() = 0;
    heartbeats_.permitted_until() = supervisor_.permitted_until();
    // What keeps a start from its first step may lie in the process.
    if (generation.attempts > 1) staying_.clear();
    if (replicas_ && generation.vain_starts >= kTrustedAttempts) {
      log::warn("the last {} starts brought no new step: this one resumes from storage",
                generation.vain_starts);
      replicas_->forget_all(generation.number);
    }
    if (replicas_) {
      replicas_->begin_generation(crew.number, heartbeats_, next_machine(generation));
    }
    crew.seen.resize(static_cast<size_t>(launch_.num_workers));
    for (int index = 0; index < launch_.num_workers; ++index) start_worker(index);
  } catch (const std::exception& exception) {
    const Error error = to_error(exception);
    log::error("{}", error.what());
    send_all(SIGKILL);
    for (int index = static_cast<int>(crew.workers.size()); index < launch_.num_workers; ++index) {
      supervisor_.worker_ended(crew.number, index, Ending::kNoStorage, error.what(), boot_millis());
    }
  }
}

std::vector<std::string> NodeSupervisor::environment_of(int index) {
  const Crew& crew = *crew_;
  std::vector<std::string> variables = {fmt::format("SKEIN_RANK={}", crew.first_rank + index),
                                        fmt::format("SKEIN_SIZE={}", crew.size),
                                        fmt::format("SKEIN_LOCAL_RANK={}", index),
                                        fmt::format("SKEIN_LOCAL_SIZE={}", launch_.num_workers),
                                        fmt::format("SKEIN_START_ID={}", crew.start_id),
                                        fmt::format("SKEIN_GENERATION={}", crew.number),
                                        fmt::format("SKEIN_LAUNCHED_MS={}", launched_ms()),
                                        fmt::format("SKEIN_WAITED_MS={}", crew.waited),
                                        fmt::format("SKEIN_HEARTBEATS={}", heartbeats_.file()),
                                        fmt::format("SKEIN_STDOUT={}", output_.get()),
                                        fmt::format("SKEIN_STDERR={}", error_output_.get()),
                                        fmt::format("SKEIN_PARENT_PID={}", ::getpid())};
  if (replicas_) variables.push_back("SKEIN_REPLICAS=" + replicas_->place(index).text());
  return variables;
}

// Whether the process that was worker `index` in the generation before is it in this one.
bool NodeSupervisor::goes_on(int index) {
  const auto staying = staying_.find(index);
  if (staying == staying_.end()) return false;
  if (staying->second.go_on(crew_->first_rank + index, environment_of(index))) {
    crew_->workers.push_back(std::move(staying->second));
  }
  staying_.erase(staying);
  return std::ssize(crew_->workers) > index;
}

void NodeSupervisor::start_worker(int index) {
  if (goes_on(index)) return;
  Crew& crew = *crew_;
  const int rank = crew.first_rank + index;
  WorkerProcess::Start start;
  start.arguments = launch_.arguments;
  start.environment = environment_of(index);
  start.wake = wake_signal();
  start.inherited = {heartbeats_.file(), output_.get(), error_output_.get()};
  if (replicas_) {
    const ReplicaPlace place = replicas_->place(index);
    start.inherited.insert(start.inherited.end(), place.kept.begin(), place.kept.end());
    if (place.event >= 0) start.inherited.push_back(place.event);
  }
  if (launch_.lock >= 0) start.inherited.push_back(launch_.lock);
  const std::vector<int> cores = usable_cores();
  const int share = std::max(1, num_cores() / launch_.num_workers);
  const bool given = launch_.threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr;
  const int threads = launch_.threads > 0 ? launch_.threads : share;
  if (!given) start.environment.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  // A run that uses fewer cores than the machine has may share it with other runs: its workers are
  // not bound to cores.
  const bool whole_machine = !given && threads == share;
  const BoundToCores bound(whole_machine ? cores_of_worker(cores, index, launch_.num_workers)
                                         : std::vector<int>{});
  if (rank > 0) start.output = rank_log(launch_.run_dir, rank);
  start.signal_mask = signals_.former();
  crew.workers.emplace_back(rank, start);
}

// The machine after this one among the members keeps copies of what this one's workers have.
std::optional<ReplicaEndpoint> NodeSupervisor::next_machine(
    const GenerationRecord& generation) const {
  const auto& members = generation.members;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].host != launch_.host || members.size() == 1) continue;
    const HostRecord* next = view_.host(members[(i + 1) % members.size()].host);
    const auto endpoint = next == nullptr ? ReplicaEndpoint{} : replica_endpoint(*next);
    if (!endpoint.address.empty()) return endpoint;
    const bool is_old = next != nullptr && keeps_plain_replicas(*next);
    log::warn("{} {}", members[(i + 1) % members.size()].host,
              next == nullptr
                  ? "has no record here yet: until the next restart this machine passes "
                    "no copies of the state on to it"
              : is_old ? "keeps no copies of the state of others: its version of Skein would take "
                         "them unencrypted; install this one there"
                       : "keeps no copies of the state of others");
  }
  return std::nullopt;
}

void NodeSupervisor::handle(int signal) {
  if (signal == SIGCHLD || signal == wake_signal()) return;
  const Millis now = boot_millis();
  const bool is_first = signal == SIGINT && !interrupted_;
  if (is_first) {
    interrupted_ = now;
    log::info("stopping after this step; Ctrl-C again ends without saving");
  }
  const bool at_once = signal == SIGINT && !is_first && now - *interrupted_ >= kSameInterrupt;
  if (signal == SIGINT && !is_first && !at_once) return;
  stop_requested_ = true;
  const int64_t stored = heartbeats_.slot(0).stored;
  supervisor_.asked_to_stop(signal, at_once, now);
  perform();
  if (at_once && exit_) {
    unsaved_since_ = stored;
    exit_->message += stored > 0 ? fmt::format("; nothing was saved since step {}", stored)
                                 : std::string("; nothing was saved so far");
  }
}

void NodeSupervisor::ask_workers(int signal) {
  if (!crew_) return;
  if (signal == kRegroup) return send_all(SIGUSR2);
  heartbeats_.stop_signal() = signal;
  // On a terminal workers get Ctrl-C themselves: as SIGTERM this is no second one.
  send_all(signal == SIGINT ? SIGTERM : signal);
}

void NodeSupervisor::send_all(int signal) {
  if (!crew_) return;
  for (const WorkerProcess& worker : crew_->workers) worker.send(signal);
}

// Kills what still runs; what stays may be of the next one. The folder in which its ranks met is
// not needed any more.
void NodeSupervisor::end_crew() {
  if (!crew_) return;
  staying_.clear();
  for (int index = 0; WorkerProcess & worker : crew_->workers) {
    if (worker.stays()) staying_.emplace(index, std::move(worker));
    ++index;
  }
  crew_->workers.clear();
  if (replicas_) replicas_->end_generation();
  std::error_code ignored;
  if (crew_->first_rank == 0) {
    fs::remove_all(crew_->rendezvous, ignored);
    if (launch_.ranks_meet && !exit_) store_.ask_to_remove(launch_.ranks_meet, crew_->start_id);
    if (launch_.ranks_meet && exit_) remove_place(*launch_.ranks_meet, crew_->start_id);
  }
  crew_.reset();
}

}  // namespace skein

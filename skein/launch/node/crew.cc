#include "skein/launch/node/crew.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <sstream>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/machine/cores.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/comm/gloo/network.h"
#include "skein/launch/node/stacks.h"
#include "skein/launch/node/worker_cores.h"
#include "skein/launch/place/replica_address.h"
#include "skein/supervise/action.h"

namespace skein {
namespace {

// So many starts in a row may use the copy in memory without a new step: a failure that comes again
// at every start may lie in the copy.
constexpr int kTrustedAttempts = 2;

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

void clear(HeartbeatSlot& slot) {
  slot.progress = slot.step = slot.excused_until = slot.saved = slot.passed_on = slot.work_us = 0;
  slot.stored = 0;
}

Millis launched_ms() { return static_cast<Millis>(process_start_seconds() * 1000); }

}  // namespace

Crew::Crew(const WorkerLaunch& launch, const sigset_t& signal_mask)
    : launch_(launch),
      signal_mask_(signal_mask),
      start_id_(launch.start_id.empty() ? new_start_id() : launch.start_id),
      replicas_(replica_server(launch)),
      heartbeats_(launch.num_workers),
      output_(kept_open(STDOUT_FILENO)),
      error_output_(kept_open(STDERR_FILENO)) {}

const Crew::Generation& Crew::begin(const GenerationRecord& record, Millis waited) {
  generation_ = Generation{};
  Generation& generation = *generation_;
  generation.number = record.number;
  generation.first_rank = record.first_rank(launch_.host);
  generation.size = record.num_ranks();
  generation.start_id = fmt::format("{}-g{}", start_id_, record.number);
  generation.rendezvous =
      rendezvous_folder(launch_.rendezvous, launch_.run_dir, generation.start_id);
  generation.oom_kills = oom_kills();
  generation.waited = waited;
  return generation;
}

void Crew::start(const GenerationRecord& record, const StoreView& view, Millis permitted_until) {
  make_folders(generation_->rendezvous);
  for (int index = 0; index < launch_.num_workers; ++index) clear(heartbeats_.slot(index));
  heartbeats_.is_over() = heartbeats_.stop_signal() = 0;
  permit_until(permitted_until);
  // What keeps a start from its first step may lie in the process.
  if (record.attempts > 1) staying_.clear();
  if (replicas_ && record.vain_starts >= kTrustedAttempts) {
    log::warn("the last {} starts brought no new step: this one resumes from storage",
              record.vain_starts);
    replicas_->forget_all(record.number);
  }
  if (replicas_) {
    replicas_->begin_generation(record.number, heartbeats_, next_machine(record, view));
  }
  seen_.assign(static_cast<size_t>(launch_.num_workers), {});
  for (int index = 0; index < launch_.num_workers; ++index) start_worker(index);
}

std::vector<std::string> Crew::environment_of(int index) {
  const Generation& generation = *generation_;
  std::vector<std::string> variables = {fmt::format("SKEIN_RANK={}", generation.first_rank + index),
                                        fmt::format("SKEIN_SIZE={}", generation.size),
                                        fmt::format("SKEIN_LOCAL_RANK={}", index),
                                        fmt::format("SKEIN_LOCAL_SIZE={}", launch_.num_workers),
                                        fmt::format("SKEIN_START_ID={}", generation.start_id),
                                        fmt::format("SKEIN_GENERATION={}", generation.number),
                                        fmt::format("SKEIN_LAUNCHED_MS={}", launched_ms()),
                                        fmt::format("SKEIN_WAITED_MS={}", generation.waited),
                                        fmt::format("SKEIN_HEARTBEATS={}", heartbeats_.file()),
                                        fmt::format("SKEIN_STDOUT={}", output_.get()),
                                        fmt::format("SKEIN_STDERR={}", error_output_.get()),
                                        fmt::format("SKEIN_PARENT_PID={}", ::getpid())};
  if (replicas_) variables.push_back("SKEIN_REPLICAS=" + replicas_->place(index).text());
  return variables;
}

// Whether the process that was worker `index` in the generation before is it in this one.
bool Crew::is_kept(int index) {
  const auto staying = staying_.find(index);
  if (staying == staying_.end()) return false;
  if (staying->second.go_on(generation_->first_rank + index, environment_of(index))) {
    workers_.push_back(std::move(staying->second));
  }
  staying_.erase(staying);
  return std::ssize(workers_) > index;
}

void Crew::start_worker(int index) {
  if (is_kept(index)) return;
  const int rank = generation_->first_rank + index;
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
  start.signal_mask = signal_mask_;
  workers_.emplace_back(rank, start);
}

// The machine after this one among the members keeps copies of what this one's workers have.
std::optional<ReplicaEndpoint> Crew::next_machine(const GenerationRecord& record,
                                                  const StoreView& view) const {
  const auto& members = record.members;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].host != launch_.host || members.size() == 1) continue;
    const HostRecord* next = view.host(members[(i + 1) % members.size()].host);
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

std::vector<pid_t> Crew::process_ids() const {
  std::vector<pid_t> ids;
  for (const WorkerProcess& worker : workers_) ids.push_back(worker.pid());
  return ids;
}

bool Crew::any_runs() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const WorkerProcess& worker) { return worker.running(); });
}

void Crew::send(int signal) const {
  for (const WorkerProcess& worker : workers_) worker.send(signal);
}

void Crew::ask(int signal) const {
  if (!generation_) return;
  if (signal == kRegroup) return send(SIGUSR2);
  heartbeats_.stop_signal() = signal;
  // On a terminal workers get Ctrl-C themselves: as SIGTERM this is no second one.
  send(signal == SIGINT ? SIGTERM : signal);
}

void Crew::ask_to_end() const {
  heartbeats_.is_over() = 1;
  send(SIGTERM);
}

// A worker that waits with a deadline of its own makes progress as long as that lasts.
Crew::Heartbeat Crew::heartbeat(int index, Millis now) {
  const HeartbeatSlot& slot = heartbeats_.slot(index);
  Seen& seen = seen_[static_cast<size_t>(index)];
  const int64_t progress = slot.progress.load();
  if (std::exchange(seen.progress, progress) != progress) ++seen.changes;
  return {.progress = seen.changes,
          .step = slot.step.load(),
          .work_us = slot.work_us.load(),
          .waits = slot.excused_until.load() > now};
}

void Crew::write_stacks() const {
  for (const WorkerProcess& worker : workers_) {
    if (!worker.running()) continue;
    log::warn("the threads of rank {}, whose stacks are in its log:", worker.rank());
    std::istringstream threads(ask_for_stacks(worker.pid()));
    for (std::string line; std::getline(threads, line);) log::warn("{}", line);
  }
}

void Crew::end() {
  if (!generation_) return;
  staying_.clear();
  for (int index = 0; WorkerProcess & worker : workers_) {
    if (worker.stays()) staying_.emplace(index, std::move(worker));
    ++index;
  }
  workers_.clear();
  if (replicas_) replicas_->end_generation();
  std::error_code ignored;  // the folder in which its ranks met is not needed any more
  if (generation_->leads()) fs::remove_all(generation_->rendezvous, ignored);
  generation_.reset();
}

}  // namespace skein

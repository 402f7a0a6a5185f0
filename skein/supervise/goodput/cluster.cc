// Machines, the store, and the two clocks.
#include "skein/supervise/goodput/cluster.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int kSingleMembers = 3;  // the first machine, and two that fail
constexpr int kWarmSpares = 2;
constexpr Millis kPulse = 1'000;

}  // namespace

GoodputCluster::GoodputCluster(const GoodputOptions& options)
    : options_(options), random_(options.seed) {
  if (options.hosts < 1 || options.step < 1 || options.duration < options.step) {
    fail(ErrorCode::kUsage,
         "{} machines, steps of {} ms and {} ms in all: expected at least one machine and one step",
         options.hosts, options.step, options.duration);
  }
  const int alike = std::max(0, options.hosts - kSingleMembers);
  add_machine(0, 1);
  if (alike > 0) add_machine(1, alike);
  for (int first = 1 + alike; first < options.hosts; ++first) add_machine(first, 1);
  for (const auto& machine : machines_) num_members_ += records(*machine);
  next_name_ = options.hosts;
  pool_ = options.spares;
  for (int i = 0; i < kWarmSpares; ++i) warm_a_spare();
}

GoodputResult GoodputCluster::run(const std::function<void(double)>& progress) {
  boot_members();
  plan_failures();
  at(options_.duration, [] {});  // up to which quiet time may be passed over
  routinely(kPulse, [this] { pulse(); });
  while (true) {
    const Millis poll = polls_.next_time() + skipped_;
    const bool is_poll = world_.empty() || poll <= world_.next_time();
    const Millis next = is_poll ? poll : world_.next_time();
    if (next > options_.duration) break;
    now_ = next;
    ++result_.events;
    (is_poll ? polls_ : world_).take()();
    if (!is_poll && progress) {
      progress(static_cast<double>(now_) / static_cast<double>(options_.duration));
    }
  }
  now_ = options_.duration;
  if (phase_ == Phase::kTraining) {
    stop_training();
    now_ = last_step_end_;
  } else {
    close_phase();
  }
  result_.duration = now_;
  return result_;
}

void GoodputCluster::later(Millis delay, std::function<void()> happens) {
  ++pending_;
  routinely(delay, [this, happens = std::move(happens)] {
    --pending_;
    happens();
  });
}

void GoodputCluster::routinely(Millis delay, std::function<void()> happens) {
  polls_.put(clock() + std::max<Millis>(1, delay), std::move(happens));
}

// The margin lets every supervisor read the newest step of all others before something happens.
void GoodputCluster::skip_quiet_time() {
  const Millis margin = 2 * (options_.exchange + options_.supervisor.beat) + kPulse;
  const bool is_calm = phase_ == Phase::kTraining || generation_.number > 0;
  if (!is_calm || troubled_ || pending_ > 0 || world_.empty()) return;
  for (const auto& machine : machines_) {
    if (!machine->supervisor) continue;
    const bool trains =
        machine->any_runs() && machine->supervisor->generation() == generation_.number;
    if (machine->supervisor->ends_workers() || (is_member(*machine) && !trains)) return;
  }
  const Millis skip = world_.next_time() - margin - now_;
  if (now_ - calm_since_ < margin || skip <= 0) return;
  now_ += skip;
  skipped_ += skip;
}

void GoodputCluster::pulse() {
  for (size_t i = 0; i < machines_.size(); ++i) {  // spares may join meanwhile
    GoodputMachine& machine = *machines_[i];
    if (!machine.supervisor || machine.generation != machine.supervisor->generation()) continue;
    const bool moves = !troubled_;
    if (moves) ++progress_;
    const int64_t step = phase_ == Phase::kTraining && moves ? steps_until(now_) : step_;
    for (size_t index = 0; index < machine.runs.size(); ++index) {
      if (!machine.runs[index] || (index == 0 && machine.hangs) || !machine.supervisor) continue;
      machine.supervisor->heartbeat(machine.generation, static_cast<int>(index), progress_,
                                    std::max(step, from_step_), !moves, clock());
      perform(machine);
    }
  }
  skip_quiet_time();
  routinely(kPulse, [this] { pulse(); });
}

GoodputMachine& GoodputCluster::add_machine(int first, int count) {
  GoodputMachine& machine = *machines_.emplace_back(std::make_unique<GoodputMachine>());
  machine.first = first;
  machine.count = count;
  machine.name = fmt::format("h{:07}", first);
  return machine;
}

// Spares follow once these train: a generation without those that are alike would be another one.
void GoodputCluster::boot_members() {
  int missing = options_.hosts;
  for (const auto& machine : machines_) {
    if (machine->retired || missing <= 0) continue;
    boot(*machine);
    missing -= machine->count;
  }
}

void GoodputCluster::boot(GoodputMachine& machine) {
  SupervisorOptions options = options_.supervisor;
  options.host = machine.name;
  options.workers = static_cast<int>(machine.runs.size());
  options.membership.min_hosts = options.membership.max_hosts = num_members_;
  machine.boot = ++boots_;
  machine.generation = 0;
  machine.supervisor = std::make_unique<Supervisor>(options);
  machine.supervisor->start(clock());
  perform(machine);
  tick(machine);
}

void GoodputCluster::tell(GoodputMachine& machine, int64_t boot,
                          const std::function<void()>& what) {
  if (machine.boot != boot || !machine.supervisor) return;
  what();
  perform(machine);
}

void GoodputCluster::tick(GoodputMachine& machine) {
  routinely(machine.supervisor->next_time() - clock(), [this, &machine, boot = machine.boot] {
    tell(machine, boot, [this, &machine] { machine.supervisor->tick(clock()); });
    if (machine.boot == boot && machine.supervisor) tick(machine);
  });
}

void GoodputCluster::perform(GoodputMachine& machine) {
  for (const Action& action : machine.supervisor->take_actions()) {
    switch (action.kind) {
      case Action::Kind::kExchange:
        exchange(machine, action.call);
        break;
      case Action::Kind::kCreate:
        create(machine, action.generation);
        break;
      case Action::Kind::kStartWorkers:
        start_workers(machine, action.generation);
        break;
      case Action::Kind::kAskWorkers:
        ask_workers(machine, action.signal);
        break;
      case Action::Kind::kEndWorkers:
      case Action::Kind::kKillWorkers:
        end_workers(machine, action.kind == Action::Kind::kKillWorkers);
        break;
      case Action::Kind::kCheckHost:
        check(machine, action.check);
        break;
      case Action::Kind::kDumpStacks:
      case Action::Kind::kEndCheck:
      case Action::Kind::kStraggler:
      case Action::Kind::kWrongBits:
      case Action::Kind::kSay:
        break;
      case Action::Kind::kExit:
        return has_left(machine);
    }
  }
}

void GoodputCluster::exchange(GoodputMachine& machine, const StoreCall& call) {
  ++result_.exchanges;
  const Millis half = slowest(options_.exchange, machine.count) / 2;
  routinely(half, [this, &machine, call, half, boot = machine.boot] {
    if (machine.boot != boot) return;
    if (call.writes) write(machine, call.record);
    routinely(half, [this, &machine, boot] {
      tell(machine, boot, [this, &machine] { machine.supervisor->exchanged(store_, clock()); });
    });
  });
}

void GoodputCluster::write(GoodputMachine& machine, HostRecord record) {
  std::vector<HostRecord>& hosts = store_.hosts.change();
  auto place = std::lower_bound(
      hosts.begin(), hosts.end(), record.host,
      [](const HostRecord& other, const std::string& name) { return other.host < name; });
  const bool is_new = place == hosts.end() || place->host != record.host;
  for (int i = 0; i < records(machine); ++i) {
    record.host = fmt::format("h{:07}", machine.first + i);
    place = is_new ? hosts.insert(place, record) : place;
    *place++ = record;
  }
}

void GoodputCluster::create(GoodputMachine& machine, const GenerationRecord& generation) {
  later(options_.exchange, [this, &machine, generation, boot = machine.boot] {
    const int64_t newest = store_.newest ? store_.newest->number : 0;
    const bool is_next = generation.number == newest + 1;
    if (is_next) store_.newest = generation;
    tell(machine, boot, [this, &machine, is_next] {
      machine.supervisor->created(is_next ? Created::kYes : Created::kExists, clock());
    });
  });
}

void GoodputCluster::check(GoodputMachine& machine, int64_t number) {
  later(options_.check, [this, &machine, number, boot = machine.boot] {
    tell(machine, boot, [this, &machine, number] {
      machine.supervisor->host_checked(number, machine.sick ? "a device fails" : "", clock());
    });
  });
}

// The run ends everywhere, for one reason; whoever starts it again does so on all machines.
void GoodputCluster::has_left(GoodputMachine& machine) {
  if (machine.any_runs()) end_workers(machine, true);
  machine.supervisor.reset();
  const bool is_verdict = store_.newest && store_.newest->verdict;
  if (!is_verdict) return retire(machine);  // it was asked to leave
  const bool any_is_left = std::any_of(machines_.begin(), machines_.end(), [](const auto& other) {
    return other->supervisor != nullptr;
  });
  if (any_is_left) return;
  ++result_.ends;
  know();
  close_phase();
  phase_ = Phase::kDown;
  copies_lost_ = true;
  at(now_ + options_.by_hand, [this] { start_again(); });
}

// A machine that is sick is taken out first, and another one takes its place.
void GoodputCluster::start_again() {
  for (const auto& machine : machines_) {
    if (machine->sick && !machine->retired) retire(*machine);
  }
  while (fit_machines() < options_.hosts && pool_ > 0) warm_a_spare();
  if (fit_machines() < options_.hosts) {
    return at(now_ + options_.by_hand, [this] { start_again(); });
  }
  close_phase();
  phase_ = Phase::kRecovering;
  store_ = {};
  generation_ = {};
  boot_members();
}

}  // namespace skein

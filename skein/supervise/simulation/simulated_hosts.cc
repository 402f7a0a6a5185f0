// Machines and the supervisors on them.
#include <algorithm>
#include <utility>

#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

void Simulation::boot(SimHost& host) {
  if (host.supervisor || over_.contains(host.index)) return;
  host.powered = true;
  host.suspended = false;
  host.deferred.clear();
  host.wrong_bits = 0;
  ++host.instance;
  host.name_of_instance = fmt::format("h{}-{}", host.index, host.instance);
  SupervisorOptions options = options_.supervisor;
  options.host = host.name();
  options.succeeds = std::exchange(host.last_of_this_boot, host.name());
  options.workers = options_.workers;
  host.supervisor = std::make_unique<Supervisor>(options);
  host.store = digest_store(records_of(host));
  note(host.name() + " starts");
  tell(host, [this, &host] { host.supervisor->start(clock(host)); });
  tick(host);
}

void Simulation::tell(SimHost& host, const std::function<void()>& what) {
  if (!host.supervisor) return;
  if (host.suspended) {
    host.deferred.push_back(what);
    return;
  }
  what();
  perform(host);
}

void Simulation::tell_later(Millis delay, SimHost& host, std::function<void()> what) {
  after(delay, [this, &host, instance = host.instance, what = std::move(what)] {
    if (host.instance == instance) tell(host, what);
  });
}

void Simulation::tick(SimHost& host) {
  const Millis wait = host.supervisor->next_time() - clock(host);
  after(host.suspended ? 1'000 : std::max<Millis>(1, wait),
        [this, &host, instance = host.instance] {
          if (host.instance != instance || !host.supervisor) return;
          tell(host, [this, &host] { host.supervisor->tick(clock(host)); });
          if (host.supervisor && !host.suspended) ask_awaited(host);
          if (host.supervisor) tick(host);
        });
}

// The system of a machine refuses connections when its supervisor is gone. A firewall may refuse
// them although the supervisor lives.
void Simulation::ask_awaited(SimHost& host) {
  for (const std::string& name : host.supervisor->awaited()) {
    const SimHost* other = host_of(name);
    const bool lives = other != nullptr && (other->supervisor || !other->powered);
    if (!chance(lives ? 0.01 : 0.3)) continue;
    tell(host, [this, &host, name] { host.supervisor->host_refuses(name, clock(host)); });
    if (!host.supervisor) return;
  }
}

void Simulation::perform(SimHost& host) {
  const std::vector<Action> actions = host.supervisor->take_actions();
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kExchange:
        exchange(host, action.call);
        break;
      case Action::Kind::kCreate:
        create(host, action.generation);
        break;
      case Action::Kind::kStartWorkers:
        start_workers(host, action.generation);
        break;
      case Action::Kind::kAskWorkers:
        ask_workers(host, action.signal);
        break;
      case Action::Kind::kEndWorkers:
        end_workers(host, false);
        break;
      case Action::Kind::kKillWorkers:
        end_workers(host, true);
        break;
      case Action::Kind::kDumpStacks:
        break;
      case Action::Kind::kCheckHost:
        check(host, action.check);
        break;
      case Action::Kind::kEndCheck:
        break;
      case Action::Kind::kStraggler:
      case Action::Kind::kWrongBits:
      case Action::Kind::kSay:
        note(host.name() + ": " + action.text);
        break;
      case Action::Kind::kExit:
        leave(host, action);
        return;
    }
  }
}

void Simulation::check(SimHost& host, int64_t number) {
  if (host.check_hangs) return;
  host.flapped = host.flaps && !host.flapped;
  const std::string problem = host.sick || host.flapped ? "a wrong product" : "";
  tell_later(between(50, 500), host, [this, &host, number, problem] {
    host.supervisor->host_checked(number, problem, clock(host));
  });
}

void Simulation::leave(SimHost& host, const Action& action) {
  note(fmt::format("{} exits with {}: {}", host.name(), action.exit_code, action.text));
  for (SimWorker& worker : host.workers) {
    if (std::exchange(worker.runs, false)) lose_worker(host, true);
  }
  host.supervisor.reset();
  const bool leaves_alone = action.exit_code == 75 && asked_to_stop_;
  if (ended_ >= 0 && action.exit_code != ended_ && !leaves_alone) {
    violate(fmt::format("{} exits with {}, others with {}", host.name(), action.exit_code, ended_));
  }
  if (ended_ >= 0) {
    over_.insert(host.index);
  } else {
    after(between(10'000, 100'000), [this, &host] { boot(host); });
  }
}

void Simulation::kill_supervisor(SimHost& host, bool power) {
  if (!host.supervisor) return;
  note(fmt::format("{} {}", host.name(), power ? "loses power" : "is killed"));
  host.supervisor.reset();
  host.deferred.clear();
  if (power) {
    host.powered = false;
    host.last_of_this_boot.clear();
  }
  for (SimWorker& worker : host.workers) worker.runs = false;  // they die with it
  lose_worker(host, !power);
  const bool comes_back = chance(0.8);
  if (comes_back) after(between(1'000, 120'000), [this, &host] { boot(host); });
}

bool Simulation::everybody_left() const {
  return now_ > 10'000 && std::none_of(hosts_.begin(), hosts_.end(), [&](const SimHost& host) {
           return host.supervisor || !over_.contains(host.index);
         });
}

}  // namespace skein

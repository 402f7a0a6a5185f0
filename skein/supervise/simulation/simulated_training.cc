// Workers, and the steps of a generation.
#include <algorithm>
#include <utility>

#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

void Simulation::start_workers(SimHost& host, const GenerationRecord& record) {
  if (std::any_of(host.workers.begin(), host.workers.end(),
                  [](const SimWorker& worker) { return worker.runs; })) {
    violate(fmt::format("{} starts workers of generation {} beside those of {}", host.name(),
                        record.number, host.generation));
  }
  host.generation = record.number;
  host.workers.assign(static_cast<size_t>(options_.workers), SimWorker{.runs = true});
  host.ready = false;
  SimGeneration& generation = generations_[record.number];
  if (generation.record.number == 0) generation.record = record;
  const auto delay =
      static_cast<Millis>(static_cast<double>(options_.start) * (0.5 + uniform()) * host.slowness);
  after(delay, [this, &host, number = record.number, instance = host.instance] {
    if (host.instance != instance || host.generation != number || !all_run(host)) return;
    host.ready = true;
    beat(host);
    begin_training(number);
  });
  // Those that wait for the others give up.
  after(delay + options_.collective_timeout, [this, &host, number = record.number] {
    if (host.generation == number && !generations_[number].trains) end_all(host, Ending::kLostPeer);
  });
}

bool Simulation::all_run(const SimHost& host) {
  return !host.workers.empty() && std::all_of(host.workers.begin(), host.workers.end(),
                                              [](const SimWorker& worker) { return worker.runs; });
}

// Null: the machine has another supervisor by now.
SimHost* Simulation::host_of(const std::string& name) {
  SimHost& host = hosts_.at(std::stoul(name.substr(1)));
  return host.name() == name ? &host : nullptr;
}

std::vector<SimHost*> Simulation::members(const SimGeneration& generation) {
  std::vector<SimHost*> found;
  for (const auto& member : generation.record.members) {
    SimHost* host = host_of(member.host);
    if (host != nullptr && host->generation == generation.record.number) found.push_back(host);
  }
  return found;
}

bool Simulation::can_step(const SimGeneration& generation) {
  const std::vector<SimHost*> hosts = members(generation);
  if (hosts.size() != generation.record.members.size()) return false;
  for (const SimHost* host : hosts) {
    if (!host->ready || !host->supervisor || !all_run(*host) || any_hangs(*host)) return false;
    if (!are_connected(*host, *host)) return false;
  }
  if (cut_.empty()) return true;
  for (const SimHost* host : hosts) {
    for (const SimHost* other : hosts) {
      if (!are_connected(*host, *other)) return false;
    }
  }
  return true;
}

void Simulation::begin_training(int64_t number) {
  SimGeneration& generation = generations_[number];
  if (generation.trains || generation.over || !can_step(generation)) return;
  for (auto& [other, before] : generations_) {
    if (other < number && !before.over && before.trains && can_step(before)) {
      violate(fmt::format("generation {} begins while {} can train", number, other));
    }
  }
  generation.trains = true;
  generation.step = committed_;
  newest_training_ = std::max(newest_training_, number);
  note(fmt::format("generation {} trains from step {}", number, committed_));
  schedule_step(number);
}

void Simulation::schedule_step(int64_t number) {
  double slowest = 1;
  for (const SimHost* host : members(generations_[number])) {
    slowest = std::max(slowest, host->slowness);
  }
  after(static_cast<Millis>(static_cast<double>(options_.step) * slowest),
        [this, number] { step(number); });
}

void Simulation::step(int64_t number) {
  SimGeneration& generation = generations_[number];
  if (generation.over) return;
  // A worker looks at its permit before it lets a step count.
  for (SimHost* host : members(generation)) {
    if (host->supervisor && clock(*host) > host->supervisor->permitted_until()) {
      note(host->name() + ": its workers have no permit any more");
      end_all(*host, Ending::kCutOff);
    }
  }
  if (!can_step(generation)) {
    if (!generation.stalled) generation.stalled = now_;
    if (now_ - *generation.stalled >= options_.collective_timeout) {
      give_up(number);
    } else {
      after(200, [this, number] { step(number); });
    }
    return;
  }
  generation.stalled.reset();
  if (number < newest_training_) {
    violate(
        fmt::format("a step of generation {} ends after {} has begun", number, newest_training_));
  }
  generation.step = std::min(generation.step + 1, options_.steps);
  ++result_.steps;
  const bool is_last = generation.step >= options_.steps;
  if (generation.step % options_.save_every == 0 || is_last || generation.ask != 0) {
    if (generation.step < committed_) violate("a committed step was lost");
    committed_ = generation.step;
  }
  for (SimHost* host : members(generation)) beat(*host);
  if (is_last || generation.ask != 0) {
    generation.over = true;
    const Ending ending = is_last                      ? Ending::kFinished
                          : generation.ask == kRegroup ? Ending::kRegrouped
                                                       : Ending::kStopped;
    for (SimHost* host : members(generation)) end_all(*host, ending);
  } else {
    schedule_step(number);
  }
}

void Simulation::give_up(int64_t number) {
  SimGeneration& generation = generations_[number];
  generation.over = true;
  for (SimHost* host : members(generation)) {
    for (size_t index = 0; index < host->workers.size(); ++index) {
      if (!host->workers[index].hangs) end_worker(*host, index, Ending::kLostPeer, "silence");
    }
  }
}

void Simulation::beat(SimHost& host) {
  const int64_t step = std::max(generations_[host.generation].step, int64_t{0});
  host.work_us += static_cast<int64_t>(500 * static_cast<double>(options_.step) * host.slowness);
  for (size_t index = 0; index < host.workers.size(); ++index) {
    if (!host.workers[index].runs || host.workers[index].hangs) continue;
    tell(host, [this, &host, generation = host.generation, index, step, beat = ++beats_] {
      host.supervisor->heartbeat(generation, static_cast<int>(index), beat, step, false,
                                 clock(host));
      host.supervisor->worked(generation, static_cast<int>(index), step, host.work_us, clock(host));
    });
  }
}

void Simulation::end_worker(SimHost& host, size_t index, Ending ending,
                            const std::string& message) {
  if (!std::exchange(host.workers[index].runs, false)) return;
  tell_later(between(0, 20), host,
             [this, &host, generation = host.generation, index, ending, message] {
               host.supervisor->worker_ended(generation, static_cast<int>(index), ending, message,
                                             clock(host));
             });
  const bool asked =
      ending == Ending::kFinished || ending == Ending::kStopped || ending == Ending::kRegrouped;
  if (!asked) lose_worker(host, true);
}

void Simulation::end_all(SimHost& host, Ending ending) {
  for (size_t index = 0; index < host.workers.size(); ++index) {
    end_worker(host, index, ending, ending_name(ending));
  }
}

void Simulation::lose_worker(SimHost& lost, bool connections_close) {
  SimGeneration& generation = generations_[lost.generation];
  const int64_t number = lost.generation;
  const bool reaches_all = connections_close && cut_.empty() && lost.powered;
  if (reaches_all && std::exchange(generation.all_told, true)) return;
  for (SimHost& host : hosts_) {
    if (host.generation != number || !generation.trains) continue;
    for (size_t index = 0; index < host.workers.size(); ++index) {
      if (!host.workers[index].runs || host.workers[index].hangs) continue;
      const bool sees = connections_close && are_connected(host, lost);
      after(sees ? between(1, 50) : options_.collective_timeout,
            [this, &host, number, index, instance = host.instance] {
              if (host.generation != number || host.instance != instance) return;
              if (!host.workers[index].hangs)
                end_worker(host, index, Ending::kLostPeer, "a peer is gone");
            });
    }
  }
  if (number != 0) generation.over = true;
}

void Simulation::ask_workers(SimHost& host, int signal) {
  SimGeneration& generation = generations_[host.generation];
  if (generation.trains) {
    generation.ask = generation.ask > 0 ? generation.ask : signal;
  } else {
    end_all(host, signal == kRegroup ? Ending::kRegrouped : Ending::kStopped);
  }
}

void Simulation::end_workers(SimHost& host, bool kill) {
  after(kill ? 1 : between(1, 500), [this, &host, kill, generation = host.generation] {
    if (host.generation != generation) return;
    for (size_t index = 0; index < host.workers.size(); ++index) {
      if (kill || !host.workers[index].hangs) {
        end_worker(host, index, kill ? Ending::kKilled : Ending::kLostPeer, "ended");
      }
    }
  });
}

}  // namespace skein

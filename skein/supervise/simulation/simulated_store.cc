// The rendezvous store, which fails and answers late or with something old.
#include <algorithm>
#include <bit>
#include <utility>

#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

void Simulation::exchange(SimHost& host, const StoreCall& call) {
  after(latency(), [this, &host, call, instance = host.instance, store = host.store] {
    if (!can_reach_store(host) || chance(unreliable())) return fail_exchange(host, instance);
    try {
      if (call.writes) store->publish(call.record);
    } catch (const Error&) {
      return fail_exchange(host, instance);
    }
    if (chance(unreliable())) return fail_exchange(host, instance);
    after(latency(), [this, &host, call, instance, store] {
      if (host.instance == instance) look(host, call, store);
    });
  });
}

void Simulation::look(SimHost& host, const StoreCall& call,
                      const std::shared_ptr<RendezvousStore>& store) {
  if (!can_reach_store(host)) return fail_exchange(host, host.instance);
  ++host.calls.looks;
  try {
    tell_later(latency(), host, [this, &host, view = store->look(call.role, call.now)] {
      host.supervisor->exchanged(view, clock(host));
    });
  } catch (const Error&) {
    fail_exchange(host, host.instance);
  }
}

void Simulation::fail_exchange(SimHost& host, int instance) {
  if (host.instance != instance) return;
  if (chance(0.7)) {
    tell_later(between(10, 5'000), host,
               [this, &host] { host.supervisor->exchanged(std::nullopt, clock(host)); });
  } else {
    after(1'000, [this, &host, instance] {
      if (host.instance != instance || !host.supervisor) return;
      if (!can_reach_store(host)) return fail_exchange(host, instance);
      tell(host, [this, &host] { host.supervisor->exchanged(std::nullopt, clock(host)); });
    });
  }
}

void Simulation::count_calls() {
  std::vector<StoreCalls>& calls = result_.calls.emplace_back();
  for (SimHost& host : hosts_) calls.push_back(std::exchange(host.calls, {}));
}

void Simulation::create(SimHost& host, const GenerationRecord& generation) {
  after(latency(), [this, &host, generation, instance = host.instance, store = host.store] {
    const auto answer = [this, &host, instance](Millis delay, Created created) {
      if (host.instance != instance) return;
      tell_later(delay, host,
                 [this, &host, created] { host.supervisor->created(created, clock(host)); });
    };
    if (!can_reach_store(host) || chance(unreliable())) {
      return answer(between(10, 5'000), Created::kFailed);
    }
    Created created = Created::kFailed;
    try {
      created = store->create(generation) ? Created::kYes : Created::kExists;
    } catch (const Error&) {
    }
    const bool answer_is_lost = chance(unreliable());
    answer(latency(), answer_is_lost ? Created::kFailed : created);
  });
}

void Simulation::note_generation(const SimHost& host, const GenerationRecord& generation) {
  std::string members;
  for (const auto& member : generation.members) members += " " + member.host;
  note(fmt::format("{} creates generation {}:{}{}", host.name(), generation.number, members,
                   generation.verdict ? " the end: " + generation.verdict->message : ""));
  for (const auto& member : generation.members) {
    const auto record = store_hosts_.find(member.host);
    if (record != store_hosts_.end() && !record->second.newest().sick.empty()) {
      violate(fmt::format("generation {} has {}, which is known to be sick", generation.number,
                          member.host));
    }
  }
  if (generation.verdict) ended_ = generation.verdict->exit_code;
}

// What stops for a newcomer that is not taken in does so ever less often.
void Simulation::check_regroup(const GenerationRecord& generation) {
  const auto last = generations_.find(generation.number - 1);
  if (last == generations_.end()) return;
  if (generation.num_ranks() > last->second.record.num_ranks()) {
    vain_regroups_ = 0;
    vain_since_ = now_;
  } else if (last->second.ask == kRegroup) {
    ++vain_regroups_;
  }
  const SupervisorOptions& supervisor = options_.supervisor;
  const auto doublings =
      std::bit_width(static_cast<uint64_t>(supervisor.max_regroup / supervisor.regroup));
  const Millis allowed = doublings + 1 + (now_ - vain_since_) / supervisor.max_regroup;
  if (vain_regroups_ > allowed) {
    violate(fmt::format("training stopped {} times in a row for machines that were not taken in",
                        vain_regroups_));
  }
}

}  // namespace skein

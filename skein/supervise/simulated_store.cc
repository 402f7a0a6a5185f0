// The rendezvous store, which fails and answers late or with something old.
#include <algorithm>
#include <bit>
#include <utility>

#include "skein/supervise/simulated_cluster.h"

namespace skein {

void Simulation::exchange(SimHost& host, const HostRecord& record) {
  const Millis arrival = latency();
  const int instance = host.instance;
  after(arrival, [this, &host, record, instance] {
    if (!can_reach_store(host) || chance(unreliable())) {
      fail_exchange(host, instance);
      return;
    }
    std::vector<std::pair<Millis, HostRecord>>& versions = store_hosts_[record.host];
    if (versions.empty() || versions.back().second.beat < record.beat) {
      versions.emplace_back(now_, record);
    }
    if (chance(unreliable())) {
      fail_exchange(host, instance);
      return;
    }
    after(latency(), [this, &host, instance] {
      if (host.instance != instance) return;
      if (!can_reach_store(host)) return fail_exchange(host, instance);
      tell_later(latency(), host, [this, &host, view = read_store(host)] {
        host.supervisor->exchanged(view, clock(host));
      });
    });
  });
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

StoreView Simulation::read_store(const SimHost& reader) {
  StoreView view;
  for (const auto& [name, versions] : store_hosts_) {
    size_t version = versions.size() - 1;
    while (name != reader.name() && version > 0 && chance(0.05) &&
           now_ - versions[version].first < 3'000) {
      --version;
    }
    view.hosts.push_back(versions[version].second);
  }
  size_t generation = store_generations_.size();
  if (generation > 0 && chance(0.05)) --generation;
  if (generation > 0) view.newest = store_generations_[generation - 1];
  return view;
}

void Simulation::create(SimHost& host, const GenerationRecord& generation) {
  after(latency(), [this, &host, generation, instance = host.instance] {
    const auto answer = [this, &host, instance](Millis delay, Created created) {
      if (host.instance != instance) return;
      tell_later(delay, host,
                 [this, &host, created] { host.supervisor->created(created, clock(host)); });
    };
    if (!can_reach_store(host) || chance(unreliable())) {
      return answer(between(10, 5'000), Created::kFailed);
    }
    const bool is_next = generation.number == static_cast<int64_t>(store_generations_.size()) + 1;
    if (is_next) {
      store_generations_.push_back(generation);
      note_generation(host, generation);
      check_regroup(generation);
    }
    const bool answer_is_lost = chance(unreliable());
    answer(latency(), answer_is_lost ? Created::kFailed
                      : is_next      ? Created::kYes
                                     : Created::kExists);
  });
}

void Simulation::note_generation(const SimHost& host, const GenerationRecord& generation) {
  std::string members;
  for (const auto& member : generation.members) members += " " + member.host;
  note(fmt::format("{} creates generation {}:{}{}", host.name(), generation.number, members,
                   generation.verdict ? " the end: " + generation.verdict->message : ""));
  for (const auto& member : generation.members) {
    const auto record = store_hosts_.find(member.host);
    if (record != store_hosts_.end() && !record->second.back().second.sick.empty()) {
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

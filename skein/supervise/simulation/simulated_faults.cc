// What goes wrong, and what must hold in the end.
#include <algorithm>
#include <utility>

#include "skein/base/text/json_text.h"
#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

void Simulation::fault() {
  if (!in_trouble()) return mend();
  ++result_.faults;
  after(next_fault(), [this] { fault(); });
  SimHost& host = any_host();
  const Millis while_it_lasts = between(500, chance(0.2) ? 300'000 : 30'000);
  if (chance(0.01)) return ask_to_stop(host);
  switch (between(0, 20)) {
    case 0:
      crash_worker(host, Ending::kCrashed);
      break;
    case 1:
      crash_worker(host, Ending::kKilled);
      break;
    case 2:
      crash_worker(host, Ending::kNoStorage);
      break;
    case 3:
      hang_worker(host);
      break;
    case 4:
      kill_supervisor(host, false);
      break;
    case 5:
      kill_supervisor(host, true);
      break;
    case 6:
      suspend(host, while_it_lasts);
      break;
    case 7:
    case 8:
      cut_from_store(host, while_it_lasts);
      break;
    case 9:
      cut_hosts(host, any_host(), while_it_lasts);
      break;
    case 10:
      stop_store(while_it_lasts);
      break;
    case 11:
      for (SimHost* member : members(generations_[newest_training_])) {
        cut_from_store(*member, 4 * while_it_lasts);
      }
      break;
    case 12:
      for (SimHost* member : members(generations_[newest_training_])) {
        suspend(*member, 4 * while_it_lasts);
      }
      break;
    case 13:
    case 14:
      fall_sick(host, 2 * while_it_lasts);
      break;
    case 15:
      flap(host, 4 * while_it_lasts);
      break;
    case 16:
      flip_bits(host);
      break;
    case 17:
    case 18:
      spoil_record(while_it_lasts);
      break;
    case 19:
      run_out_of_files(host, while_it_lasts);
      break;
    default:
      host.slowness = chance(0.5) ? 1 : 1 + 4 * uniform();
  }
}

void Simulation::crash_worker(SimHost& host, Ending ending) {
  if (ending == Ending::kNoStorage) storage_failed_ = true;
  if (host.workers.empty()) return;
  const auto index = static_cast<size_t>(between(0, options_.workers - 1));
  note(fmt::format("{}: a worker ends: {}", host.name(), ending_name(ending)));
  // A cause that never comes twice: the same one three times would rightly end the run.
  end_worker(host, index, ending, fmt::format("fault {}", result_.faults));
}

void Simulation::hang_worker(SimHost& host) {
  if (host.workers.empty()) return;
  note(host.name() + ": a worker hangs");
  host.workers.front().hangs = true;
}

void Simulation::ask_to_stop(SimHost& host) {
  if (!host.supervisor) return;
  note(host.name() + " is asked to stop");
  asked_to_stop_ = true;
  tell(host, [this, &host] { host.supervisor->asked_to_stop(15, false, clock(host)); });
}

// A worker of it fails, as sickness shows.
void Simulation::fall_sick(SimHost& host, Millis time) {
  (chance(0.5) ? host.sick : host.check_hangs) = true;
  note(fmt::format("{} falls sick for {} ms; its check {}", host.name(), time,
                   host.sick ? "says so" : "hangs"));
  crash_worker(host, Ending::kCrashed);
  after(time, [&host] { host.sick = host.check_hangs = false; });
}

void Simulation::flap(SimHost& host, Millis time) {
  note(fmt::format("{}: every other check fails for {} ms", host.name(), time));
  host.flaps = true;
  after(time, [&host] { host.flaps = false; });
}

// A host that meets them again soon is left out until its supervisor is started anew, so they come
// again only where enough others are left.
void Simulation::flip_bits(SimHost& host) {
  // Nor does one count that is not there: it may never have said that it exists.
  const auto may_be_left_out =
      std::count_if(hosts_.begin(), hosts_.end(),
                    [](const SimHost& other) { return other.wrong_bits > 1 || !other.supervisor; });
  const int spare = options_.num_hosts - options_.supervisor.membership.min_hosts;
  if (host.workers.empty() || (host.wrong_bits > 0 && may_be_left_out >= spare)) return;
  ++host.wrong_bits;
  crash_worker(host, Ending::kWrongBits);
}

void Simulation::suspend(SimHost& host, Millis time) {
  if (!host.supervisor || host.suspended) return;
  note(fmt::format("{} is suspended for {} ms", host.name(), time));
  host.suspended = true;
  after(time, [this, &host, instance = host.instance] {
    if (host.instance == instance) resume(host);
  });
}

void Simulation::cut_from_store(SimHost& host, Millis time) {
  note(fmt::format("{} cannot reach the store for {} ms", host.name(), time));
  host.reaches_store = false;
  after(time, [&host] { host.reaches_store = true; });
}

void Simulation::cut_hosts(const SimHost& a, const SimHost& b, Millis time) {
  if (a.index == b.index) return;
  note(fmt::format("{} and {} do not reach each other for {} ms", a.name(), b.name(), time));
  const auto pair = std::minmax(a.index, b.index);
  cut_.insert(pair);
  after(time, [this, pair] { cut_.erase(pair); });
}

void Simulation::stop_store(Millis time) {
  note(fmt::format("the store is down for {} ms", time));
  store_up_ = false;
  after(time, [this] { store_up_ = true; });
}

void Simulation::spoil_record(Millis time) {
  const SimHost& host = any_host();
  unreadable_ = chance(0.5) ? host.name() : chance(0.5) ? "digest" : "digest-hosts";
  note(fmt::format("the record {} cannot be read for {} ms", unreadable_, time));
  after(time, [this] { unreadable_.clear(); });
}

void Simulation::run_out_of_files(SimHost& host, Millis time) {
  note(fmt::format("{} cannot open files for {} ms", host.name(), time));
  host.opens_files = false;
  after(time, [&host] { host.opens_files = true; });
}

void Simulation::mend() {
  note("all is mended");
  store_up_ = true;
  unreadable_.clear();
  cut_.clear();
  for (SimHost& host : hosts_) {
    host.reaches_store = host.opens_files = true;
    host.slowness = 1;
    host.sick = host.check_hangs = host.flaps = false;
    resume(host);
    after(between(0, 10'000), [this, &host] { boot(host); });
  }
}

void Simulation::check_end() {
  if (!result_.violation.empty()) return;
  if (!everybody_left()) {
    for (const auto& [name, versions] : store_hosts_) {
      note(json_text(host_to_json(versions.newest())));
    }
    if (!store_generations_.empty()) {
      note(json_text(generation_to_json(*store_generations_.back())));
    }
    for (SimHost& host : hosts_) {
      if (host.supervisor) {
        note(fmt::format("{}: generation {}, permitted until {}, now {}", host.name(),
                         host.supervisor->generation(), host.supervisor->permitted_until(),
                         clock(host)));
      }
      for (const SimWorker& worker : host.workers) {
        note(fmt::format("  worker of {} runs {} hangs {}", host.generation, worker.runs,
                         worker.hangs));
      }
    }
    violate(fmt::format("the run has not ended {} s after everything was mended; step {}",
                        options_.patience / 1000, committed_));
    return;
  }
  result_.exit_code = ended_;
  if (ended_ == 0 && committed_ != options_.steps) violate("finished before the last step");
  const bool not_saved = ended_ == 1 && storage_failed_;
  if (ended_ != 0 && !(asked_to_stop_ && (ended_ == 75 || not_saved))) {
    violate(fmt::format("the run ended with {}", ended_));
  }
}

}  // namespace skein

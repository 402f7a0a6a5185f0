#include "skein/supervise/host_workers.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

// Of two endings on one host, which one says more about the generation.
int weight(Ending ending) {
  if (is_cause(ending)) return 3;
  if (was_asked_for(ending)) return 2;
  return ending == Ending::kNone ? 0 : 1;
}

}  // namespace

void HostWorkers::begin(int64_t generation) {
  generation_ = generation;
  ending_ = Ending::kNone;
  message_.clear();
  kill_at_.reset();
  settle_at_.reset();
  regroups_ = false;
}

void HostWorkers::start(const GenerationRecord& generation, Millis now) {
  begin(generation.number);
  workers_.assign(static_cast<size_t>(options_.workers), Worker{.changed = now});
  runs_ = true;
  meter_ = WorkMeter(options_.workers);
  first_rank_ = generation.first_rank(options_.host);
  best_step_ = generation.best_step;
  trains_.reset();
  progressed_ = now;
  actions_.add(Action::Kind::kStartWorkers).generation = generation;
}

void HostWorkers::skip(int64_t generation, Ending ending, const std::string& message) {
  begin(generation);
  ending_ = ending;
  message_ = message;
}

void HostWorkers::heartbeat(int index, int64_t progress, int64_t step, bool waits, Millis now) {
  Worker& worker = workers_.at(static_cast<size_t>(index));
  if (waits) worker.changed = now;
  if (worker.progress != progress) {
    worker.progress = progress;
    worker.changed = progressed_ = now;
  }
  if (step > best_step_ && !trains_) trains_ = now;
}

bool HostWorkers::ended(int index, Ending ending, const std::string& message, Millis now) {
  workers_.at(static_cast<size_t>(index)).runs = false;
  const bool by_us = kill_at_ && ending == Ending::kKilled;
  if (!by_us) note(ending, message);
  runs_ = std::any_of(workers_.begin(), workers_.end(),
                      [](const Worker& worker) { return worker.runs; });
  if (!runs_) {
    kill_at_.reset();
    settle_at_.reset();
    return true;
  }
  if (ending == Ending::kLostPeer) {
    // A consequence: the worker that is the cause may be about to say so.
    if (!kill_at_ && !settle_at_) settle_at_ = now + options_.grace;
  } else if (!by_us && (!was_asked_for(ending) || ending == Ending::kStoppedEarly)) {
    end(ending, message, false, now);
  }
  return false;
}

void HostWorkers::end(Ending ending, const std::string& message, bool kill, Millis now) {
  note(ending, message);
  settle_at_.reset();
  if (kill) {
    if (killed_ != generation_) actions_.add(Action::Kind::kKillWorkers);
    killed_ = generation_;
    kill_at_ = now + options_.grace;
  } else if (!kill_at_) {
    actions_.add(Action::Kind::kEndWorkers);
    kill_at_ = now + options_.grace;
  }
}

void HostWorkers::note(Ending ending, const std::string& message) {
  if (weight(ending) <= weight(ending_)) return;
  ending_ = ending;
  message_ = message;
}

bool HostWorkers::watch_end(Millis now) {
  if (settle_at_ && now >= *settle_at_) end(Ending::kLostPeer, message_, false, now);
  if (!kill_at_) return false;
  if (now < *kill_at_) return true;
  actions_.add(Action::Kind::kKillWorkers);
  kill_at_ = now + options_.grace;
  return true;
}

void HostWorkers::watch_hang(int64_t step, Millis now) {
  for (size_t index = 0; index < workers_.size(); ++index) {
    const Worker& worker = workers_[index];
    if (!worker.runs || now - worker.changed < options_.hang) continue;
    const std::string text =
        fmt::format("rank {} made no progress for {} s after step {}",
                    first_rank_ + static_cast<int>(index), options_.hang / 1000, step);
    note(Ending::kHung, text);
    Action& dump = actions_.add(Action::Kind::kDumpStacks);
    dump.worker = static_cast<int>(index);
    dump.text = text;
    kill_at_ = now + options_.stacks;
    return;
  }
}

void HostWorkers::regroup() {
  if (regroups_) return;
  regroups_ = true;
  actions_.say("another machine is ready: training stops after this step to take it in");
  actions_.add(Action::Kind::kAskWorkers).signal = kRegroup;
}

std::vector<Millis> HostWorkers::deadlines() const {
  std::vector<Millis> times;
  for (const auto& deadline : {kill_at_, settle_at_}) {
    if (deadline) times.push_back(*deadline);
  }
  return times;
}

}  // namespace skein

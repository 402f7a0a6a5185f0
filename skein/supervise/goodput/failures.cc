// When what fails, and which machines are left.
#include <algorithm>

#include "skein/base/error.h"
#include "skein/supervise/goodput/cluster.h"

namespace skein {

// So many of each, at times that are drawn alike over the whole.
void GoodputCluster::plan_failures() {
  for (const FailureCause& cause : options_.failures) {
    for (int i = 0; i < cause.count; ++i) {
      const auto time = static_cast<Millis>(uniform() * static_cast<double>(options_.duration));
      at(time, [this, &cause] { strike(cause); });
    }
  }
}

// Each machine of the generation is as likely as any other; those that are alike stand for
// themselves only in number.
GoodputMachine* GoodputCluster::victim() {
  std::vector<GoodputMachine*> single;
  for (const auto& machine : machines_) {
    if (machine->count == 1 && machine->supervisor && machine->any_runs()) {
      single.push_back(machine.get());
    }
  }
  if (single.empty()) return nullptr;
  const bool is_first = uniform() * options_.hosts < 1 || single.size() == 1;
  if (is_first) return single.front();
  const auto among = static_cast<double>(single.size() - 1);
  return single[1 + static_cast<size_t>(uniform() * among)];
}

void GoodputCluster::strike(const FailureCause& cause) {
  ++result_.failures;
  GoodputMachine* machine = victim();
  if (machine == nullptr) {
    ++result_.struck_while_down;
    return;
  }
  machine->sick |= cause.replaced;
  if (cause.effect == FailureEffect::kAsked) {
    tell(*machine, machine->boot,
         [this, machine] { machine->supervisor->asked_to_stop(15, false, clock()); });
    return;
  }
  if (phase_ == Phase::kTraining) stop_training();
  troubled_ = true;
  const std::string text = fmt::format("{} ({})", cause.name, result_.failures);
  switch (cause.effect) {
    case FailureEffect::kCrash:
      end_worker(*machine, 0, Ending::kCrashed, text);
      break;
    case FailureEffect::kHang:
      machine->hangs = true;
      break;
    case FailureEffect::kLost:
      retire(*machine);
      ++lost_together_;
      break;
    case FailureEffect::kAsked:
      break;
  }
  // Two machines hold what only they have: one, and the next, which keeps its copy.
  const double neighbours = 2.0 / std::max(1, options_.hosts - 1);
  if (lost_together_ > 1 && uniform() < neighbours * (lost_together_ - 1)) copies_lost_ = true;
  // Nothing tells the others before a collective is over its time, but their supervisors.
  routinely(options_.collective_timeout, [this, number = generation_.number] {
    for (const auto& other : machines_) {
      if (other->generation != number) continue;
      for (size_t index = 0; index < other->runs.size(); ++index) {
        if (index > 0 || !other->hangs) end_worker(*other, index, Ending::kLostPeer, "silence");
      }
    }
  });
}

// To repair, from which it comes back as a spare.
void GoodputCluster::retire(GoodputMachine& machine) {
  if (std::exchange(machine.retired, true)) return;
  machine.supervisor.reset();
  machine.runs.fill(false);
  machine.ready = false;
  ++machine.boot;
  ++result_.replaced;
  at(now_ + options_.repair, [this] {
    ++pool_;
    watch_machines();
  });
  watch_machines();
}

void GoodputCluster::warm_a_spare() {
  if (pool_ == 0) return;
  --pool_;
  add_machine(next_name_++, 1);
}

int GoodputCluster::fit_machines() const {
  int fit = 0;
  for (const auto& machine : machines_) {
    if (!machine->retired && !machine->sick) fit += machine->count;
  }
  return fit;
}

// Keeps spares at hand, and notes since when machines are missing.
void GoodputCluster::watch_machines() {
  if (phase_ == Phase::kDown) return;
  while (pool_ > 0 && fit_machines() < options_.hosts + 2) {
    warm_a_spare();
    boot(*machines_.back());
  }
  const bool lacks = fit_machines() < options_.hosts;
  if (lacks && !lacks_since_) lacks_since_ = now_;
  if (!lacks && lacks_since_) {
    if (phase_ == Phase::kRecovering) waited_ += now_ - std::max(*lacks_since_, since_);
    lacks_since_.reset();
  }
}

GoodputResult simulate_goodput(const GoodputOptions& options,
                               const std::function<void(double)>& progress) {
  return GoodputCluster(options).run(progress);
}

}  // namespace skein

// Workers, steps, and the account of the time.
#include <algorithm>

#include "skein/base/error.h"
#include "skein/supervise/goodput/cluster.h"

namespace skein {
namespace {

// How many multiples of `every` lie in (first, last].
int64_t multiples(int64_t first, int64_t last, int64_t every) {
  return every > 0 ? last / every - first / every : 0;
}

int64_t newest_multiple(int64_t step, int64_t every) {
  return every > 0 ? step / every * every : 0;
}

}  // namespace

bool GoodputCluster::is_member(const GoodputMachine& machine) const {
  return generation_.member(machine.name) != nullptr;
}

void GoodputCluster::start_workers(GoodputMachine& machine, const GenerationRecord& generation) {
  if (generation.number > generation_.number) {
    generation_ = generation;
    ++result_.generations;
    from_memory_ = !copies_lost_ && copied_ >= committed_;
    calm_since_ = now_;
    troubled_ = false;
  }
  machine.generation = generation.number;
  machine.runs.fill(true);
  machine.hangs = machine.ready = false;
  const Millis start = from_memory_ ? options_.start_memory : options_.start_storage;
  at(now_ + start, [this, &machine, boot = machine.boot, number = generation.number] {
    if (machine.boot != boot || machine.generation != number || !machine.any_runs()) return;
    machine.ready = true;
    begin_training(number);
  });
}

void GoodputCluster::begin_training(int64_t generation) {
  if (generation != generation_.number || troubled_) return;
  int ready = 0;
  for (const auto& machine : machines_) {
    if (machine->generation == generation && machine->ready) ready += records(*machine);
  }
  if (ready < num_members_) return;
  close_phase();
  if (phase_ == Phase::kRecovering) result_.pauses.push_back(now_ - failed_at_);
  phase_ = Phase::kTraining;
  from_step_ = from_memory_ ? std::max(copied_, committed_) : committed_;
  if (!from_memory_ && step_ > 0) ++result_.from_storage;
  count_steps(from_step_, step_, -1);
  result_.redone += time_of(from_step_, step_ - from_step_);
  step_ = copied_ = from_step_;
  copies_lost_ = false;
  lost_together_ = 0;
  trains_since_ = calm_since_ = now_;
  for (size_t i = 0; i < machines_.size(); ++i) {  // a spare may follow
    GoodputMachine& machine = *machines_[i];
    if (machine.sick && machine.supervisor) retire(machine);
    if (!machine.retired && !machine.supervisor) boot(machine);
  }
}

Millis GoodputCluster::time_of(int64_t first, int64_t steps) const {
  return steps * options_.step +
         multiples(first, first + steps, options_.save_every) * options_.save +
         multiples(first, first + steps, options_.copy_every) * options_.copy;
}

// The last step that has ended by `time` in this generation.
int64_t GoodputCluster::steps_until(Millis time) const {
  const Millis trained = std::max<Millis>(0, time - trains_since_);
  int64_t most = trained / options_.step, least = 0;
  while (least < most) {
    const int64_t middle = (least + most + 1) / 2;
    if (time_of(from_step_, middle) <= trained) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return from_step_ + least;
}

void GoodputCluster::stop_training() {
  step_ = steps_until(now_);
  last_step_end_ = trains_since_ + time_of(from_step_, step_ - from_step_);
  count_steps(from_step_, step_, 1);
  const auto kept = [&](int64_t every, Millis write) {
    return newest_multiple(steps_until(now_ - write), every);
  };
  // A copy is whole on its peer by the end of the next step.
  committed_ = std::max(committed_, kept(options_.save_every, options_.save_write));
  copied_ = std::max(copied_, kept(options_.copy_every, options_.step));
  failed_at_ = now_;
  since_ = last_step_end_;
  phase_ = Phase::kDetecting;
  troubled_ = true;
}

// Steps that count, and what they stand still for.
void GoodputCluster::count_steps(int64_t first, int64_t last, int sign) {
  result_.steps += sign * (last - first);
  result_.productive += sign * (last - first) * options_.step;
  result_.saving += sign * multiples(first, last, options_.save_every) * options_.save;
  result_.replicating += sign * multiples(first, last, options_.copy_every) * options_.copy;
}

void GoodputCluster::know() {
  if (phase_ != Phase::kDetecting) return;
  close_phase();
  result_.detections.push_back(now_ - failed_at_);
  phase_ = Phase::kRecovering;
  watch_machines();
}

// Adds the time since the phase began to its part.
void GoodputCluster::close_phase() {
  if (lacks_since_ && phase_ == Phase::kRecovering) {
    waited_ += now_ - std::max(*lacks_since_, since_);
    lacks_since_ = now_;
  }
  const Millis time = now_ - std::exchange(since_, now_);
  const Millis waited = std::exchange(waited_, 0);
  switch (phase_) {
    case Phase::kStarting:
      result_.starting += time;
      break;
    case Phase::kTraining:
      break;  // by its steps
    case Phase::kDetecting:
      result_.detecting += time;
      break;
    case Phase::kRecovering:
      result_.recovering += time - waited;
      result_.waiting += waited;
      break;
    case Phase::kDown:
      result_.waiting += time;
  }
}

void GoodputCluster::end_worker(GoodputMachine& machine, size_t index, Ending ending,
                                const std::string& why) {
  if (!std::exchange(machine.runs[index], false)) return;
  machine.ready = false;
  later(1 + static_cast<Millis>(19 * uniform()),
        [this, &machine, boot = machine.boot, index, ending, why, number = machine.generation] {
          if (ending != Ending::kStopped) know();
          tell(machine, boot, [this, &machine, index, ending, &why, number] {
            machine.supervisor->worker_ended(number, static_cast<int>(index), ending, why, clock());
          });
        });
}

void GoodputCluster::end_workers(GoodputMachine& machine, bool kill) {
  know();
  later(slowest(options_.end, machine.count),
        [this, &machine, kill, boot = machine.boot, number = machine.generation] {
          if (machine.boot != boot || machine.generation != number) return;
          for (size_t index = 0; index < machine.runs.size(); ++index) {
            if (!kill && index == 0 && machine.hangs) continue;
            end_worker(machine, index, kill ? Ending::kKilled : Ending::kLostPeer, "ended");
          }
        });
}

// All ranks end the step, save, and stop; where there is no step yet, this machine's end.
void GoodputCluster::ask_workers(GoodputMachine& machine, int) {
  if (phase_ != Phase::kTraining) {
    for (size_t index = 0; index < machine.runs.size(); ++index) {
      end_worker(machine, index, Ending::kStopped, "asked to stop");
    }
    return;
  }
  const int64_t next = steps_until(now_) + 1;
  const Millis step_end = trains_since_ + time_of(from_step_, next - from_step_);
  later(step_end - now_, [this, number = generation_.number] {
    if (phase_ != Phase::kTraining || generation_.number != number) return;
    const Millis asked = now_;
    stop_training();
    later(options_.save_write, [this, number, asked] {
      if (generation_.number != number || phase_ != Phase::kDetecting) return;
      result_.saving += now_ - std::exchange(since_, now_);
      committed_ = step_;
      phase_ = Phase::kRecovering;
      failed_at_ = asked;
      for (const auto& owned : machines_) {
        if (owned->generation != number) continue;
        for (size_t index = 0; index < owned->runs.size(); ++index) {
          end_worker(*owned, index, Ending::kStopped, "asked to stop");
        }
      }
    });
  });
}

}  // namespace skein

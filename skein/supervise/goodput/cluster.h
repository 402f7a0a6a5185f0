// The cluster behind simulate_goodput(), for its own sources alone: machines, store and clocks in
// cluster.cc, training and the account of its time in training.cc, failures in
// failures.cc.
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "skein/supervise/goodput/goodput.h"
#include "skein/supervise/simulation/event_queue.h"

namespace skein {

// A machine, or `count` of them that are alike; the supervisor is that of the first.
struct GoodputMachine {
  int first = 0, count = 1;
  std::string name;
  int64_t boot = 0;
  std::unique_ptr<Supervisor> supervisor;
  bool sick = false;
  bool retired = false;  // its place is taken, or it is in repair: it never comes back as this one
  int64_t generation = 0;
  // The first is the one that fails; the second stands for all others of the machine.
  std::array<bool, 2> runs{};
  bool hangs = false, ready = false;

  bool any_runs() const { return runs[0] || runs[1]; }
};

class GoodputCluster {
 public:
  explicit GoodputCluster(const GoodputOptions& options);
  GoodputResult run(const std::function<void(double)>& progress);

 private:
  enum class Phase : uint8_t { kStarting, kTraining, kDetecting, kRecovering, kDown };

  // ---- clocks and chance

  // The supervisors' clock stands still in quiet time.
  Millis clock() const { return now_ - skipped_; }
  // On the supervisors' clock; quiet time waits for it.
  void later(Millis delay, std::function<void()> happens);
  // The same for what goes on for ever and changes nothing while all is quiet.
  void routinely(Millis delay, std::function<void()> happens);
  // On the clock of the world.
  void at(Millis time, std::function<void()> happens) { world_.put(time, std::move(happens)); }
  double uniform() { return std::uniform_real_distribution<double>()(random_); }
  // What takes each of `count` machines up to `most` takes the slowest of them.
  Millis slowest(Millis most, int count) {
    return 1 + static_cast<Millis>(static_cast<double>(most) * std::pow(uniform(), 1.0 / count));
  }
  void skip_quiet_time();

  // ---- machines, and what their supervisors want

  GoodputMachine& add_machine(int first, int count);
  void boot(GoodputMachine& machine);
  void boot_members();
  void tell(GoodputMachine& machine, int64_t boot, const std::function<void()>& what);
  void tick(GoodputMachine& machine);
  void perform(GoodputMachine& machine);
  void exchange(GoodputMachine& machine, const StoreCall& call);
  void write(GoodputMachine& machine, HostRecord record);
  void create(GoodputMachine& machine, const GenerationRecord& generation);
  void check(GoodputMachine& machine, int64_t number);
  void has_left(GoodputMachine& machine);
  void start_again();
  void pulse();

  // ---- training

  int records(const GoodputMachine& machine) const {
    return options_.all_records ? machine.count : 1;
  }
  bool is_member(const GoodputMachine& machine) const;
  void start_workers(GoodputMachine& machine, const GenerationRecord& generation);
  void begin_training(int64_t generation);
  void end_worker(GoodputMachine& machine, size_t index, Ending ending, const std::string& why);
  void end_workers(GoodputMachine& machine, bool kill);
  void ask_workers(GoodputMachine& machine, int signal);
  // Time for so many steps after `first`, with what they stand still for.
  Millis time_of(int64_t first, int64_t steps) const;
  int64_t steps_until(Millis time) const;
  // No further step ends.
  void stop_training();
  void know();
  void count_steps(int64_t first, int64_t last, int sign);
  void close_phase();

  // ---- failures

  void plan_failures();
  void strike(const FailureCause& cause);
  GoodputMachine* victim();
  void retire(GoodputMachine& machine);
  void warm_a_spare();
  int fit_machines() const;
  void watch_machines();

  const GoodputOptions options_;
  std::mt19937_64 random_;
  EventQueue polls_, world_;
  Millis now_ = 0, skipped_ = 0;
  int pending_ = 0;  // of later()
  int64_t boots_ = 0, progress_ = 0;

  std::vector<std::unique_ptr<GoodputMachine>> machines_;
  int next_name_ = 0;
  int pool_ = 0;         // spares that are not switched on
  int num_members_ = 0;  // of a generation, as records
  StoreView store_;

  Phase phase_ = Phase::kStarting;
  Millis since_ = 0;   // the phase
  Millis waited_ = 0;  // of the phase, for machines
  std::optional<Millis> lacks_since_;
  GenerationRecord generation_;  // the newest for which workers were started
  bool from_memory_ = false, copies_lost_ = true;
  int lost_together_ = 0;
  bool troubled_ = false;  // a failure is under way
  Millis failed_at_ = 0;
  Millis calm_since_ = 0;  // nothing but polls since then, unless something is under way
  Millis trains_since_ = 0, last_step_end_ = 0;
  int64_t from_step_ = 0, step_ = 0, committed_ = 0, copied_ = 0;
  GoodputResult result_;
};

}  // namespace skein

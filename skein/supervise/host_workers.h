// The workers of one generation on this host, from their start until the last of them has ended.
//
// Ends  a worker fails → its neighbours are asked to end, and killed after `grace`. A worker that
//       lost a peer is a consequence: the worker that is the cause has `grace` to say so
// Hang  a worker whose heartbeat does not change for `hang`: its stacks are written, it is killed
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/supervise/action.h"
#include "skein/supervise/supervisor_options.h"

namespace skein {

class HostWorkers {
 public:
  // Both must outlive this object.
  HostWorkers(const SupervisorOptions& options, Actions& actions)
      : options_(options), actions_(actions) {}

  void start(const GenerationRecord& generation, Millis now);
  // Takes them for ended before they began.
  void skip(int64_t generation, Ending ending, const std::string& message);
  // Whether these are of `generation`, and run.
  bool run(int64_t generation) const { return runs_ && generation == generation_; }
  bool run() const { return runs_; }  // any of them
  int64_t generation() const { return generation_; }

  // See Supervisor.
  void heartbeat(int index, int64_t progress, int64_t step, bool waits, Millis now);
  bool worked(int index, int64_t step, int64_t work_us, Millis now) {
    return meter_.add(index, step, work_us, now);
  }
  std::vector<int64_t> work_us() const { return meter_.us_per_step(); }
  // Returns whether it was the last one.
  bool ended(int index, Ending ending, const std::string& message, Millis now);

  // Ends them all; `kill`: without grace.
  void end(Ending ending, const std::string& message, bool kill, Millis now);
  // Kills those that had `grace` to end. Returns whether they are to end.
  bool watch_end(Millis now);
  // Kills all if one hangs; `step`: the last one that is known to be done.
  void watch_hang(int64_t step, Millis now);
  // Asks them, once, to stop for another machine.
  void regroup();

  bool were_asked_to_end() const { return kill_at_.has_value(); }
  bool are_ending() const { return kill_at_ || settle_at_; }
  std::optional<Millis> trains_since() const { return trains_; }  // their first new step
  Millis progressed() const { return progressed_; }  // when any of them last did anything
  // Of the one that says most, so far.
  Ending ending() const { return ending_; }
  const std::string& message() const { return message_; }
  // The deadlines of watch_end().
  std::vector<Millis> deadlines() const;

 private:
  struct Worker {
    bool runs = true;
    int64_t progress = -1;
    Millis changed = 0;
  };
  void begin(int64_t generation);
  void note(Ending ending, const std::string& message);

  const SupervisorOptions& options_;
  Actions& actions_;
  int64_t generation_ = 0;
  std::vector<Worker> workers_;
  WorkMeter meter_;
  int first_rank_ = 0;
  bool runs_ = false;
  int64_t best_step_ = 0;  // GenerationRecord::best_step
  std::optional<Millis> trains_;
  Millis progressed_ = 0;
  Ending ending_ = Ending::kNone;
  std::string message_;
  bool regroups_ = false;  // they were asked to
  std::optional<Millis> settle_at_, kill_at_;
  int64_t killed_ = 0;  // the generation whose workers were killed
};

}  // namespace skein

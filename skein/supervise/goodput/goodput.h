// What share of its time a run on a large cluster trains, under failures at a given rate: the
// supervisors are the real ones (supervisor.h), on simulated machines and a simulated clock.
//
// Formula  goodput = productive / duration; the parts of docs/reliability.md add up to the duration
// Alike    machines between which nothing tells apart are one, with one supervisor and one record:
//          the same inputs give the same outputs, and the protocol's rules say "all", "any" or "the
//          first". What takes them a random time takes the slowest of them. Failures strike the
//          others: the first machine of the generation, two more members, and the spares that
//          follow them. With `all_records` each has its record; the result is the same
// Quiet    while all train, or start, and nothing is under way, the supervisors' clocks stand still
//          until shortly before the next thing that happens. They see differences of time alone,
//          and an exchange with the store then changes nothing but the time of the last one
// Cost     20 ms a failure: 10 s for 16,384 ranks in 54 days with 466 failures
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "skein/supervise/supervisor.h"

namespace skein {

enum class FailureEffect : uint8_t {
  kCrash,  // a worker ends
  kHang,   // a worker does nothing any more, or a link carries nothing
  kLost,   // the machine falls silent
  kAsked,  // the machine is asked to stop, for maintenance
};

struct FailureCause {
  std::string name;
  FailureEffect effect = FailureEffect::kCrash;
  bool replaced = false;  // the machine fails its check from then on, and goes to repair
  int count = 0;          // in all of the time that is simulated
};

// The 419 unexpected interruptions of Llama 3 405B on 16,384 GPUs in 54 days, and the 47 planned
// ones: arXiv 2407.21783, section 3.3.4, table 5. What each does to a machine is assumed.
std::vector<FailureCause> llama3_failures();
// The same shares of another number; the largest remainders are rounded up.
std::vector<FailureCause> scaled(std::vector<FailureCause> causes, int count);

struct GoodputOptions {
  uint64_t seed = 1;
  int hosts = 2'048;  // that train: all of them are needed
  int spares = 16;
  Millis duration = 54LL * 86'400'000;
  std::vector<FailureCause> failures;
  bool all_records = false;
  SupervisorOptions supervisor;  // its times; machines and workers are set from the above
  Millis collective_timeout = 60'000;
  Millis exchange = 20;  // with the store, there and back
  Millis step = 6'000;
  int64_t save_every = 0;    // steps; 0: never
  Millis save = 0;           // a save stands still so long
  Millis save_write = 0;     // and is committed after so long
  int64_t copy_every = 0;    // of the state to the memory of a peer; 0: none
  Millis copy = 0;           // it stands still so long
  Millis start_memory = 0;   // of the workers, up to their first step, from copies
  Millis start_storage = 0;  // from a checkpoint
  Millis end = 1'000;        // of workers that are told to, at most
  Millis check = 300;        // of a machine
  Millis repair = 86'400'000;
  Millis by_hand = 60'000;  // until a run that ended is started again
};

struct GoodputResult {
  Millis duration = 0;
  // They add up to `duration`.
  Millis productive = 0, saving = 0, replicating = 0, redone = 0, starting = 0, detecting = 0,
         recovering = 0, waiting = 0;
  int64_t steps = 0;  // that count
  int64_t failures = 0;
  int64_t struck_while_down = 0;  // of them, without further effect
  int64_t generations = 0, ends = 0, replaced = 0, from_storage = 0;
  int64_t exchanges = 0, events = 0;
  std::vector<Millis> detections, pauses;  // a failure each: until it is known; to the next step
  double goodput() const {
    return duration > 0 ? static_cast<double>(productive) / static_cast<double>(duration) : 0;
  }
};

// `progress` hears the share of the time that is done. Throws Error{kUsage} for options that make
// no run, such as no machines.
GoodputResult simulate_goodput(const GoodputOptions& options,
                               const std::function<void(double)>& progress = {});

}  // namespace skein

// Watches the gradient norm for spikes and for divergence.
//
// Rule     r = mean norm of the 20 steps before this one, whatever they held.
//          A step is in a spike when its norm > r + 0.1; the spike ends, and its length in steps is
//          counted, when a norm is back at or under r + 0.1. The first 20 steps are not judged.
//          Alarm: the norm is past 3 x the lowest norm so far, or a spike has lasted 5 steps.
//          A norm that is not finite is a spike and an alarm, and does not enter r.
// Quiet    An alarm is raised once. It is over after 20 steps in a row without cause for it, after
//          the second alarm 40, then 80, …: a run whose norm is noise alone alarms a few times and
//          no more. While it lasts it is raised again where the norm has grown to 3 x what it was
//          at the last time, and where the norm is not finite.
// Source   Gradient monitoring of the Llama 2 pre-training on 128 Trainium nodes (AWS, 2024).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "skein/base/json.h"

namespace skein {

class SpikeDetector {
 public:
  static constexpr int kWindow = 20;
  static constexpr float kMargin = 0.1f;
  static constexpr float kAlarmGrowth = 3.0f;
  static constexpr int64_t kPersistentSteps = 5;
  static constexpr int64_t kCalmSteps = 20;

  struct Verdict {
    int64_t spike_steps = 0;      // length so far of the spike that this step is in; 0: none
    int64_t recovered_steps = 0;  // length of the spike that ended before this step; 0: none
    float mean = 0;               // r; 0 in the first steps
    std::string alarm;            // why, for people; empty: none
  };

  Verdict observe(float grad_norm);

  // Spikes that ended, by length in steps.
  const std::map<int64_t, int64_t>& counts_by_length() const { return counts_; }
  int64_t spike_steps() const { return spike_steps_; }

  // All of the state, for checkpoints; from_json throws Error{kCorrupt}.
  Json to_json() const;
  static SpikeDetector from_json(const Json& json);
  bool operator==(const SpikeDetector&) const = default;

 private:
  float mean() const;
  std::string find_cause(float grad_norm) const;
  std::string raise_alarm(float grad_norm, const std::string& cause);

  std::vector<float> window_;  // the newest finite norms, oldest first
  float lowest_ = 0;           // of the finite norms above 0; 0: none yet
  int64_t spike_steps_ = 0;
  // Of the alarm that lasts: 0 where there is none.
  float alarm_norm_ = 0;              // when it was raised the last time
  int64_t calm_steps_ = 0;            // without cause for it, in a row
  int64_t needed_calm_ = kCalmSteps;  // to end it
  std::map<int64_t, int64_t> counts_;
};

// The share of one-step spikes among all.
double one_step_share(const std::map<int64_t, int64_t>& counts_by_length);

}  // namespace skein

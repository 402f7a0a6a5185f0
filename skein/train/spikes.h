// Watches the gradient norm for spikes and for divergence.
//
// Rule     r = mean norm of the 20 steps before this one, whatever they held.
//          A step is in a spike when its norm > r + 0.1; the spike ends, and its length in steps is
//          counted, when a norm is back at or under r + 0.1. The first 20 steps are not judged.
//          Alarm: the norm is past 3 x the lowest r so far, or a spike has lasted 5 steps. It is
//          raised once and again only after a step without cause for it.
//          A norm that is not finite is a spike and an alarm, and does not enter r.
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
  std::string find_alarm(float grad_norm) const;

  std::vector<float> window_;  // the newest finite norms, oldest first
  float lowest_mean_ = 0;      // 0: no window was full yet
  int64_t spike_steps_ = 0;
  bool alarmed_ = false;
  std::map<int64_t, int64_t> counts_;
};

}  // namespace skein

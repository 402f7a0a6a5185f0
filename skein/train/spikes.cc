#include "skein/train/spikes.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "skein/base/error.h"

namespace skein {

float SpikeDetector::mean() const {
  const double sum = std::accumulate(window_.begin(), window_.end(), 0.0);
  return static_cast<float>(sum / static_cast<double>(window_.size()));
}

std::string SpikeDetector::find_alarm(float grad_norm) const {
  if (!std::isfinite(grad_norm)) return fmt::format("the gradient norm is {}", grad_norm);
  if (lowest_mean_ > 0 && grad_norm > kAlarmGrowth * lowest_mean_) {
    return fmt::format("the gradient norm {:.3g} is past {} times its lowest mean, {:.3g}",
                       grad_norm, kAlarmGrowth, lowest_mean_);
  }
  if (spike_steps_ >= kPersistentSteps) {
    return fmt::format("the gradient norm has been in a spike for {} steps", spike_steps_);
  }
  return "";
}

SpikeDetector::Verdict SpikeDetector::observe(float grad_norm) {
  Verdict verdict;
  const bool full = window_.size() == kWindow;
  if (full) {
    verdict.mean = mean();
    if (lowest_mean_ == 0 || verdict.mean < lowest_mean_) lowest_mean_ = verdict.mean;
  }
  const bool finite = std::isfinite(grad_norm);
  if (!finite || (full && grad_norm > verdict.mean + kMargin)) {
    verdict.spike_steps = ++spike_steps_;
  } else if (spike_steps_ > 0) {
    verdict.recovered_steps = spike_steps_;
    ++counts_[spike_steps_];
    spike_steps_ = 0;
  }
  std::string alarm = find_alarm(grad_norm);
  if (!alarmed_) verdict.alarm = alarm;
  alarmed_ = !alarm.empty();
  if (finite) {
    if (full) window_.erase(window_.begin());
    window_.push_back(grad_norm);
  }
  return verdict;
}

Json SpikeDetector::to_json() const {
  Json counts = Json::array();
  for (const auto& [length, count] : counts_) counts.push_back({length, count});
  return {{"window", window_},
          {"lowest_mean", lowest_mean_},
          {"spike_steps", spike_steps_},
          {"alarmed", alarmed_},
          {"counts", counts}};
}

SpikeDetector SpikeDetector::from_json(const Json& json) {
  SpikeDetector detector;
  try {
    detector.window_ = json.at("window").get<std::vector<float>>();
    detector.lowest_mean_ = json.at("lowest_mean").get<float>();
    detector.spike_steps_ = json.at("spike_steps").get<int64_t>();
    detector.alarmed_ = json.at("alarmed").get<bool>();
    for (const Json& row : json.at("counts")) {
      detector.counts_[row.at(0).get<int64_t>()] = row.at(1).get<int64_t>();
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::kCorrupt, "state of the gradient-spike detector: {}", error.what());
  }
  if (detector.window_.size() > kWindow || detector.spike_steps_ < 0) {
    fail(ErrorCode::kCorrupt,
         "state of the gradient-spike detector: {} norms, spike of {} steps: expected at most {} "
         "norms and no negative length",
         detector.window_.size(), detector.spike_steps_, kWindow);
  }
  return detector;
}

}  // namespace skein

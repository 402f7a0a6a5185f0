#include "skein/record/log/spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "skein/base/error.h"

namespace skein {

float SpikeDetector::mean() const {
  const double sum = std::accumulate(window_.begin(), window_.end(), 0.0);
  return static_cast<float>(sum / static_cast<double>(window_.size()));
}

namespace {

double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

}  // namespace

double SpikeDetector::noise() const {
  std::vector<double> differences;
  for (size_t i = 1; i < window_.size(); ++i) {
    if (window_[i] <= 0 || window_[i - 1] <= 0) continue;
    differences.push_back(std::log(static_cast<double>(window_[i]) / window_[i - 1]));
  }
  if (differences.empty()) return 0;
  const double drift = quantile(differences, 0.5);
  for (double& difference : differences) difference = std::abs(difference - drift);
  constexpr double kNormalQuartile = 1.15;  // of |z| where z is normal
  return quantile(differences, 0.75) / (kNormalQuartile * std::sqrt(2.0));
}

std::string SpikeDetector::find_cause(float grad_norm, bool stands_out) {
  if (!std::isfinite(grad_norm)) return fmt::format("the gradient norm is {}", grad_norm);
  const bool judged = window_.size() == kWindow;
  const bool has_grown = judged && lowest_ > 0 && stands_out && grad_norm > kAlarmGrowth * lowest_;
  grown_steps_ = has_grown ? grown_steps_ + 1 : 0;
  if (first_steps_ < kFirstSteps && grown_steps_ < kPersistentSteps) return "";
  if (has_grown) {
    return fmt::format("the gradient norm {:.3g} is past {} times its lowest value, {:.3g}",
                       grad_norm, kAlarmGrowth, lowest_);
  }
  if (stands_out && spike_steps_ >= kPersistentSteps) {
    return fmt::format("the gradient norm has been in a spike for {} steps", spike_steps_);
  }
  return "";
}

// Returns the cause if an alarm is to be raised now, else "".
std::string SpikeDetector::raise_alarm(float grad_norm, const std::string& cause) {
  if (cause.empty()) {
    if (alarm_norm_ > 0 && ++calm_steps_ >= needed_calm_) {
      alarm_norm_ = 0;
      needed_calm_ *= 2;
    }
    return "";
  }
  calm_steps_ = 0;
  const bool finite = std::isfinite(grad_norm);
  if (alarm_norm_ > 0 && finite && grad_norm <= kAlarmGrowth * alarm_norm_) return "";
  alarm_norm_ = finite ? std::max(grad_norm, std::numeric_limits<float>::min())
                       : std::numeric_limits<float>::max();
  return cause;
}

SpikeDetector::Verdict SpikeDetector::observe(float grad_norm) {
  Verdict verdict;
  const bool full = window_.size() == kWindow;
  if (full) verdict.mean = mean();
  const bool finite = std::isfinite(grad_norm);
  if (!finite || (full && grad_norm > verdict.mean + kMargin)) {
    verdict.spike_steps = ++spike_steps_;
  } else if (spike_steps_ > 0) {
    verdict.recovered_steps = spike_steps_;
    ++counts_[spike_steps_];
    spike_steps_ = 0;
  }
  verdict.stands_out = verdict.spike_steps > 0 &&
                       (!finite || grad_norm > verdict.mean * std::exp(kNoises * noise()));
  verdict.alarm = raise_alarm(grad_norm, find_cause(grad_norm, verdict.stands_out));
  first_steps_ = std::min(first_steps_ + 1, kFirstSteps);
  if (finite) {
    if (grad_norm > 0 && (lowest_ == 0 || grad_norm < lowest_)) lowest_ = grad_norm;
    if (full) window_.erase(window_.begin());
    window_.push_back(grad_norm);
  }
  return verdict;
}

double one_step_share(const std::map<int64_t, int64_t>& counts_by_length) {
  int64_t all = 0;
  for (const auto& [length, count] : counts_by_length) all += count;
  const auto ones = counts_by_length.find(1);
  if (all == 0 || ones == counts_by_length.end()) return 0;
  return static_cast<double>(ones->second) / static_cast<double>(all);
}

Json SpikeDetector::to_json() const {
  Json counts = Json::array();
  for (const auto& [length, count] : counts_) counts.push_back({length, count});
  return {
      {"window", window_},           {"lowest", lowest_},           {"spike_steps", spike_steps_},
      {"first_steps", first_steps_}, {"grown_steps", grown_steps_}, {"alarm_norm", alarm_norm_},
      {"calm_steps", calm_steps_},   {"needed_calm", needed_calm_}, {"counts", counts}};
}

SpikeDetector SpikeDetector::from_json(const Json& json) {
  SpikeDetector detector;
  try {
    detector.window_ = json.at("window").get<std::vector<float>>();
    detector.lowest_ = json.at("lowest").get<float>();
    detector.spike_steps_ = json.at("spike_steps").get<int64_t>();
    // Checkpoints of older versions do not have these: their runs count as settled.
    detector.first_steps_ = json.value("first_steps", kFirstSteps);
    detector.grown_steps_ = json.value("grown_steps", int64_t{0});
    detector.alarm_norm_ = json.at("alarm_norm").get<float>();
    detector.calm_steps_ = json.at("calm_steps").get<int64_t>();
    detector.needed_calm_ = json.at("needed_calm").get<int64_t>();
    for (const Json& row : json.at("counts")) {
      detector.counts_[row.at(0).get<int64_t>()] = row.at(1).get<int64_t>();
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::kCorrupt, "state of the gradient-spike detector: {}", error.what());
  }
  const bool counts_steps = detector.spike_steps_ >= 0 && detector.calm_steps_ >= 0 &&
                            detector.first_steps_ >= 0 && detector.grown_steps_ >= 0;
  if (detector.window_.size() > kWindow || !counts_steps || detector.needed_calm_ < kCalmSteps) {
    fail(ErrorCode::kCorrupt,
         "state of the gradient-spike detector: {} norms, spike of {} steps, {} of {} calm steps: "
         "expected at most {} norms, no negative length, and {} calm steps at least",
         detector.window_.size(), detector.spike_steps_, detector.calm_steps_,
         detector.needed_calm_, kWindow, kCalmSteps);
  }
  return detector;
}

}  // namespace skein

#include "skein/record/report/ceiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/record/files/event_fields.h"

namespace skein {

void ReportCeiling::add_start(const Json& event) {
  CeilingStart start{
      .time = number_or(event, "time", 0),
      .ceiling = number_or(event, "ceiling_flops", 0),
      .group = fmt::format("{} {} {}", text_or(event, "host", ""), integer_or(event, "ranks", 0),
                           text_or(event, "arithmetic", ""))};
  double& highest = highest_[start.group];
  highest = std::max(highest, start.ceiling);
  by_number_[integer_or(event, "number", std::ssize(starts_) + 1)] = starts_.size();
  starts_.push_back(std::move(start));
}

const ReportCeiling::CeilingStart* ReportCeiling::start_of(const StepMetrics& metrics) const {
  if (metrics.start > 0) {
    const auto found = by_number_.find(metrics.start);
    return found == by_number_.end() ? nullptr : &starts_[found->second];
  }
  const auto later = std::find_if(starts_.begin(), starts_.end(), [&](const CeilingStart& start) {
    return start.time > metrics.time;
  });
  return later == starts_.begin() ? nullptr : &*(later - 1);
}

double ReportCeiling::reached(const StepMetrics& metrics, const CeilingStart& start) {
  const double ceiling = metrics.ceiling_flops > 0 ? metrics.ceiling_flops : start.ceiling;
  const double flops = metrics.matmul_ceiling_share * ceiling;
  return std::isfinite(flops) ? flops : 0;
}

void ReportCeiling::add_step(const StepMetrics& metrics) {
  const CeilingStart* start = start_of(metrics);
  if (start == nullptr) return;
  double& highest = highest_[start->group];
  highest = std::max({highest, reached(metrics, *start), double{metrics.ceiling_flops}});
}

void ReportCeiling::rescale(std::vector<StepMetrics>& steps) const {
  for (StepMetrics& metrics : steps) {
    const CeilingStart* start = start_of(metrics);
    if (start == nullptr) continue;
    const double highest = highest_.at(start->group), flops = reached(metrics, *start);
    if (highest <= 0 || flops <= 0) continue;
    metrics.matmul_ceiling_share = static_cast<float>(flops / highest);
    metrics.ceiling_flops = static_cast<float>(highest);
  }
}

double ReportCeiling::newest() const {
  return starts_.empty() ? 0 : highest_.at(starts_.back().group);
}

}  // namespace skein

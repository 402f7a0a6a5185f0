// Each step's share of the highest matrix-product rate that is known of its machine, however busy
// that was when it measured.
//
// Rule     Starts of one host (of rank 0), number of ranks and kind of kernels have one ceiling:
//          the highest that one of them measured, or that a step reached. So no share is above 1,
//          and shares of one run compare with each other.
// Files    of versions that did not write the ceiling of a step: its start's
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/record/files/metrics.h"

namespace skein {

class ReportCeiling {
 public:
  void add_start(const Json& event);
  void add_step(const StepMetrics& metrics);
  // In place of the shares that the steps had when they were written.
  void rescale(std::vector<StepMetrics>& steps) const;
  double newest() const;  // of the newest start; 0: not known

 private:
  struct CeilingStart {
    double time = 0;
    double ceiling = 0;
    std::string group;
  };

  const CeilingStart* start_of(const StepMetrics& metrics) const;
  static double reached(const StepMetrics& metrics, const CeilingStart& start);

  std::vector<CeilingStart> starts_;
  std::map<int64_t, size_t> by_number_;
  std::map<std::string, double> highest_;  // by group
};

}  // namespace skein

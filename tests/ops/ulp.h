// Errors of ops in units of the last place, written to the file that SKEIN_ULP_FILE names: one line
// of JSON for each output that was compared with double precision (scripts/ulp.py reads them).
//
// Unit    the distance between neighbouring numbers of the output's dtype at the expected value, or
//         at the root mean square of the output where that is larger: where terms of a sum cancel,
//         no kernel can be more accurate than its terms. A correctly rounded result has at most 0.5
// Noise   of an expected value that is itself a difference: below a thousand times of it, errors
//         say nothing
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"

namespace skein::op_test {

inline bool records_ulp() {
  static const bool records = std::getenv("SKEIN_ULP_FILE") != nullptr;
  return records;
}

inline double unit_in_last_place(DType dtype, double value) {
  const int bits = dtype == DType::kBF16 ? 8 : 24;
  return std::ldexp(1.0, std::max(std::ilogb(std::abs(value)), -126) - bits + 1);
}

struct UlpErrors {
  double largest = 0, mean = 0;
};

inline UlpErrors ulp_errors(DType dtype, const std::vector<double>& got,
                            const std::vector<double>& want, double noise) {
  double squares = 0;
  for (const double value : want) squares += value * value;
  const auto count = static_cast<double>(want.size());
  const double typical = std::sqrt(squares / count);
  UlpErrors errors;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // also infinities, and outputs that are all zero
    const double scale = std::max({std::abs(want[i]), typical, 1000 * noise});
    const double error = std::abs(got[i] - want[i]) / unit_in_last_place(dtype, scale);
    errors.largest = std::max(errors.largest, error);
    errors.mean += error / count;
  }
  return errors;
}

// `what`: "forward" or "gradient". `from_bf16`: whether an input is in bf16.
inline void record_ulp(std::string_view op, std::string_view what, bool from_bf16, DType dtype,
                       const std::vector<double>& got, const std::vector<double>& want,
                       double noise = 0) {
  if (!records_ulp() || want.empty() || (dtype != DType::kF32 && dtype != DType::kBF16)) return;
  const UlpErrors errors = ulp_errors(dtype, got, want, noise);
  std::ofstream(std::getenv("SKEIN_ULP_FILE"), std::ios::app)
      << fmt::format(R"({{"op": "{}", "what": "{}", "from": "{}", "to": "{}", "largest": {}, )"
                     R"("mean": {}, "count": {}}})"
                     "\n",
                     op, what, from_bf16 ? "bf16" : "fp32", dtype == DType::kF32 ? "fp32" : "bf16",
                     errors.largest, errors.mean, want.size());
}

}  // namespace skein::op_test

#include "skein/evaluate/execution/pass_at_k.h"

namespace skein {

double pass_at_k(int64_t num_samples, int64_t num_right, int64_t k) {
  if (num_samples - num_right < k) return 1;
  double none_right = 1;
  for (int64_t i = num_samples - num_right + 1; i <= num_samples; ++i) {
    none_right *= 1 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1 - none_right;
}

}  // namespace skein

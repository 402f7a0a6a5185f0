#include "skein/record/report/html/thin_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace skein {
namespace {

void add_bucket(std::span<const float> values, size_t begin, size_t end, ThinnedCurve& curve) {
  std::optional<size_t> lowest, highest, broken;
  double sum = 0;
  size_t count = 0;
  for (size_t row = begin; row < end; ++row) {
    if (!std::isfinite(values[row])) {
      if (!broken) broken = row;
      continue;
    }
    sum += values[row];
    ++count;
    if (!lowest || values[row] < values[*lowest]) lowest = row;
    if (!highest || values[row] > values[*highest]) highest = row;
  }
  for (const std::optional<size_t>& row : {lowest, highest, broken}) {
    if (row) curve.rows.push_back(*row);
  }
  if (count > 0) {
    curve.means.push_back(
        {begin + (end - begin) / 2, static_cast<float>(sum / static_cast<double>(count))});
  }
}

}  // namespace

ThinnedCurve thin_curve(std::span<const float> values, size_t most) {
  ThinnedCurve curve;
  if (values.size() <= most) {
    curve.rows.resize(values.size());
    std::iota(curve.rows.begin(), curve.rows.end(), size_t{0});
    return curve;
  }
  const bool is_broken =
      std::any_of(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  const size_t num_buckets = std::max<size_t>((most - 2) / (is_broken ? 3 : 2), 1);
  curve.rows = {0, values.size() - 1};
  for (size_t i = 0; i < num_buckets; ++i) {
    add_bucket(values, i * values.size() / num_buckets, (i + 1) * values.size() / num_buckets,
               curve);
  }
  std::sort(curve.rows.begin(), curve.rows.end());
  curve.rows.erase(std::unique(curve.rows.begin(), curve.rows.end()), curve.rows.end());
  return curve;
}

}  // namespace skein

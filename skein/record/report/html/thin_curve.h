// A curve of many steps with fewer points, so that spikes survive: the lowest and the highest value
// of each of equal runs of steps stay, besides the first and the last step.
//
// Rule     up to `most` values all stay. Of more, `most` at most: buckets of equal numbers of rows,
//          with the minimum and the maximum of each; where values are not finite, one of each
//          bucket that has such values stays too, so that the curve breaks there
// Means    of the finite values of each bucket, for smoothing: the mean of a bucket's two extremes
//          is not the mean of its steps. Empty where all values stay
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace skein {

inline constexpr size_t kMostCurvePoints = 2000;

struct ThinnedCurve {
  struct BucketMean {
    size_t row = 0;  // in the middle of the bucket
    float mean = 0;
  };
  std::vector<size_t> rows;  // that stay, ascending
  std::vector<BucketMean> means;
};

// `most`: 8 or more.
ThinnedCurve thin_curve(std::span<const float> values, size_t most = kMostCurvePoints);

}  // namespace skein

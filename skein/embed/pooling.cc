#include "skein/embed/pooling.h"

#include <algorithm>
#include <cmath>

namespace skein {

std::string_view pooling_name(Pooling pooling) {
  switch (pooling) {
    case Pooling::kFirst:
      return "cls";
    case Pooling::kLast:
      return "lasttoken";
    case Pooling::kMean:
      return "mean";
    case Pooling::kMax:
      return "max";
  }
  return "";
}

void pool(Pooling pooling, std::span<const float> hidden, int64_t size, std::span<float> out) {
  const auto tokens = static_cast<int64_t>(hidden.size()) / size;
  const auto row = [&](int64_t token) { return hidden.subspan(token * size, out.size()); };
  switch (pooling) {
    case Pooling::kFirst:
      std::ranges::copy(row(0), out.begin());
      return;
    case Pooling::kLast:
      std::ranges::copy(row(tokens - 1), out.begin());
      return;
    case Pooling::kMax:
      std::ranges::copy(row(0), out.begin());
      for (int64_t token = 1; token < tokens; ++token) {
        for (size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], row(token)[i]);
      }
      return;
    case Pooling::kMean:
      std::vector<double> sums(out.size());
      for (int64_t token = 0; token < tokens; ++token) {
        const std::span<const float> values = row(token);
        for (size_t i = 0; i < out.size(); ++i) sums[i] += values[i];
      }
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<float>(sums[i] / static_cast<double>(tokens));
      }
      return;
  }
}

void normalize(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * value;
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (float& value : vector) value = static_cast<float>(value / norm);
}

}  // namespace skein

#include "skein/record/report/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace skein {
namespace {

constexpr double kEmpty = std::numeric_limits<double>::quiet_NaN();

// The mean y of each column; NaN where a column has no point.
std::vector<double> column_means(const std::vector<PlotPoint>& points, int width) {
  const double first = points.front().x;
  const double span = points.back().x - first;
  std::vector<double> sums(static_cast<size_t>(width), 0.0);
  std::vector<int64_t> counts(static_cast<size_t>(width), 0);
  for (const PlotPoint& point : points) {
    const double share = span > 0 ? (point.x - first) / span : 0;
    const auto column = static_cast<size_t>(std::min(share * width, width - 1.0));
    sums[column] += point.y;
    ++counts[column];
  }
  for (size_t column = 0; column < sums.size(); ++column) {
    sums[column] = counts[column] ? sums[column] / static_cast<double>(counts[column]) : kEmpty;
  }
  return sums;
}

// The eighths of a cell, 0..8, that the value fills in `row`, counted from the bottom.
int eighths(double share, int row, int height) {
  const double filled = share * (height * 8 - 1) + 1 - row * 8;
  return static_cast<int>(std::clamp(std::floor(filled), 0.0, 8.0));
}

}  // namespace

std::string text_plot(std::span<const PlotPoint> points, int width, int height) {
  static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<PlotPoint> finite;
  for (const PlotPoint& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) finite.push_back(point);
  }
  if (finite.size() < 2 || width < 1 || height < 1) return "";
  std::sort(finite.begin(), finite.end(),
            [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });

  const std::vector<double> means = column_means(finite, width);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const double mean : means) {
    if (std::isnan(mean)) continue;
    least = std::min(least, mean);
    greatest = std::max(greatest, mean);
  }
  const double span = greatest > least ? greatest - least : 1;
  std::string text;
  for (int row = height - 1; row >= 0; --row) {
    const bool labelled = row == height - 1 || row == 0;
    const double label = row == height - 1 ? greatest : least;
    text += labelled ? fmt::format("{:>10.4g} │", label) : fmt::format("{:>10} │", "");
    for (const double mean : means) {
      text += std::isnan(mean) ? " " : kBlocks[eighths((mean - least) / span, row, height)];
    }
    text += '\n';
  }
  const std::string last = fmt::format("{}", finite.back().x);
  text += fmt::format("{:>10}  {:<{}}{}\n", "", finite.front().x,
                      std::max(1, width - static_cast<int>(last.size())), last);
  return text;
}

}  // namespace skein

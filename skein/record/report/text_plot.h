// Plots a curve with block characters.
#pragma once

#include <span>
#include <string>

namespace skein {

struct PlotPoint {
  double x;
  double y;
};

// `height` lines of `width` columns plus labels: the smallest and the largest y on the left, the
// first and the last x below. Each column shows the mean y of its points. Points that are not
// finite are skipped; "" where fewer than two remain.
std::string text_plot(std::span<const PlotPoint> points, int width, int height);

}  // namespace skein

// A curve drawn with characters.
#pragma once

#include <span>
#include <string>

namespace skein {

struct PlotPoint {
  double x;
  double y;
};

// `height` lines of `width` columns plus labels: the least and the greatest y at the left, the
// first and the last x below. Each column shows the mean y of its points. Points that are not
// finite are left out; "" where fewer than two remain.
std::string text_plot(std::span<const PlotPoint> points, int width, int height);

}  // namespace skein

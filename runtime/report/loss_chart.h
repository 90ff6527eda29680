// The chart loss.svg: the loss over the steps, self-contained, for light and dark pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;  // a loss that is not finite breaks the line
};

struct LossChart {
  std::string title;
  std::string subtitle;           // "1.2 M parameters · dp 2 x tp 2"
  std::vector<LossPoint> points;  // in the order of steps
  std::string what = "loss";      // the quantity shown
};

// Draws a valid picture for any number of points.
std::string to_svg(const LossChart& chart);

}  // namespace hyperrun

// One axis of a chart: a range that its data fit in, and round numbers to mark on it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace hyperrun {

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;  // within low and high, ascending
  int decimals = 0;           // of a tick's label
  double one = 1;             // of the unit that labels count in
  std::string unit;           // behind a label, or empty
  bool logarithmic = false;   // equal ratios are equally far apart

  // Where a value stands between the pixels of low and high.
  double place(double value, double pixel_low, double pixel_high) const {
    const double part =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return pixel_low + part * (pixel_high - pixel_low);
  }
  std::string label(double tick) const;
};

// About `count` ticks; the range ends on ticks. One value gets some room around it.
Axis value_axis(double low, double high, int count);
// For whole numbers that need no room: the range is low to high, ticks are whole.
Axis whole_axis(double low, double high, int count);
// Bytes from 0 to `high`, a power of two of them from tick to tick: "1.5 GiB".
Axis bytes_axis(double high, int count);
// Nanoseconds from 0 to `high`, in the unit of `high`: "20 ms".
Axis time_axis(double high, int count);
// Nanoseconds that are far from 0, both above it; logarithmic where they differ by much: "5 s", "10 s", "20
// s".
Axis time_range_axis(double low, double high, int count);

}  // namespace hyperrun

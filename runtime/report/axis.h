// One axis of a chart: a range that holds its data, and round numbers to mark on it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace hyperrun {

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;  // within low and high, ascending
  int decimals = 0;           // decimals of a tick's label
  double one = 1;             // one of the unit of labels
  std::string unit;           // the unit, written behind a label, or empty
  bool logarithmic = false;   // equal ratios are equally far apart

  // Pixel of a value, between the pixels of low and high.
  double place(double value, double pixel_low, double pixel_high) const {
    const double part =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return pixel_low + part * (pixel_high - pixel_low);
  }
  std::string label(double tick) const;
};

// An axis with about `count` ticks, whose range ends on ticks. A single value gets some room around it.
Axis value_axis(double low, double high, int count);
// An axis of whole numbers without extra room: the range is low to high, ticks are whole.
Axis whole_axis(double low, double high, int count);
// An axis of bytes from 0 to `high`, with a power of two from tick to tick: "1.5 GiB".
Axis bytes_axis(double high, int count);
// An axis of nanoseconds from 0 to `high`, in the unit of `high`: "20 ms".
Axis time_axis(double high, int count);
// An axis of nanoseconds between two values above 0, logarithmic if they differ by much: "5 s", "10 s", "20
// s".
Axis time_range_axis(double low, double high, int count);

}  // namespace hyperrun

// The chart of a device's HBM over a step: areas by category, stacked, against the budget. It is
// self-contained, for light and dark pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

// The panel of the devices of one role. The bytes at times[i] last until times[i + 1], and the last ones
// until the end. Several points at one time are moments of their own.
struct MemoryPanel {
  std::string name;                              // "pp 0 (layers 0 to 7)"
  std::int64_t planned = 0;                      // bytes of the arena that the plan needs
  std::vector<std::int64_t> times;               // ns, ascending
  std::vector<std::vector<std::int64_t>> bytes;  // [category][point]

  std::int64_t total(std::size_t point) const;
};

struct MemoryChart {
  std::string title;
  std::string subtitle;
  std::int64_t budget = 0;              // bytes
  std::int64_t end = 0;                 // end of the step, ns
  std::vector<std::string> categories;  // from the bottom up
  std::vector<MemoryPanel> panels;      // if there are many, only some are drawn
};

// Draws a valid picture of a few hundred kilobytes, also for long or empty curves, or none. Among points that
// share a column of pixels the highest one is drawn: no peak is lost.
std::string to_svg(const MemoryChart& chart);

}  // namespace hyperrun

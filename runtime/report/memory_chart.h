// What fills a device's HBM over a step, and when: areas by category, stacked, against the budget.
// Self-contained, for light and dark pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

// Of the devices of one role. What lives at times[i] does so until times[i + 1], and at last until the end;
// of several points at one time each is a moment of its own.
struct MemoryPanel {
  std::string name;                              // "pp 0 (layers 0 to 7)"
  std::int64_t planned = 0;                      // bytes of the arena that the plan takes
  std::vector<std::int64_t> times;               // ns, ascending
  std::vector<std::vector<std::int64_t>> bytes;  // [category][point]

  std::int64_t total(std::size_t point) const;
};

struct MemoryChart {
  std::string title;
  std::string subtitle;
  std::int64_t budget = 0;              // bytes
  std::int64_t end = 0;                 // of the step, ns
  std::vector<std::string> categories;  // from the bottom up
  std::vector<MemoryPanel> panels;      // of many only some are drawn
};

// With long curves, empty ones or none, a valid picture of a few hundred kilobytes. Points that share a
// column of pixels are drawn as the one of them where the most lives: no peak is lost.
std::string to_svg(const MemoryChart& chart);

}  // namespace hyperrun

// The chart of a planner's answers: the ranking of strategies, with a bar for the parts of each one's step,
// and the front of step time against memory. It is self-contained, for light and dark pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

struct PlanBar {
  std::string name;           // the strategy
  std::vector<double> parts;  // parts of the step in ns, in the order of PlanChart::parts
};

struct PlanPoint {
  std::int64_t bytes = 0;  // bytes of HBM
  double time = 0;         // ns
  std::string name;
};

// A series of points with one number of devices; less memory means a longer step.
struct PlanSeries {
  std::string name;  // "256 devices"
  std::vector<PlanPoint> points;
};

struct PlanChart {
  std::string title, subtitle;
  std::vector<std::string> parts;  // "compute"
  std::vector<PlanBar> bars;       // the best first
  double bound = 0;                // lower bound of a step, ns; 0: not known
  std::vector<PlanSeries> front;   // the front; empty: it is not drawn
  std::int64_t budget = 0;         // bytes of HBM
  std::string note;                // text below the bars: what they prove
};

// Draws a valid picture for any number of bars.
std::string to_svg(const PlanChart& chart);

}  // namespace hyperrun

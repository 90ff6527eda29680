// What a planner has found: the ranking of strategies, a bar for each of where its step goes; and the front
// of step time against memory. Self-contained, for light and dark pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

struct PlanBar {
  std::string name;           // the strategy
  std::vector<double> parts;  // ns, in the order of PlanChart::parts; together the step
};

struct PlanPoint {
  std::int64_t bytes = 0;  // of HBM
  double time = 0;         // ns
  std::string name;
};

// Points with one number of devices, for which less memory means a longer step.
struct PlanSeries {
  std::string name;  // "256 devices"
  std::vector<PlanPoint> points;
};

struct PlanChart {
  std::string title, subtitle;
  std::vector<std::string> parts;  // "compute"
  std::vector<PlanBar> bars;       // the best first
  double bound = 0;                // ns that no step is below; 0: it is not known
  std::vector<PlanSeries> front;   // empty: it is not drawn
  std::int64_t budget = 0;         // bytes of HBM
  std::string note;                // below the bars: what they prove
};

// With many bars or none a valid picture.
std::string to_svg(const PlanChart& chart);

}  // namespace hyperrun

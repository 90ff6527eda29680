#include "runtime/report/memory_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/units.h"
#include "runtime/report/axis.h"
#include "runtime/report/svg.h"

namespace hyperrun {
namespace {

constexpr double kWidth = 880, kLeft = 84,
                 kRight = 724;  // borders of the plots; the names of lines stand beside them
constexpr double kLegendTop = 84, kLegendRow = 22;
constexpr double kHeading = 34, kGap = 14,
                 kFoot = 62;            // height above each plot, below it, and below the last one
constexpr std::size_t kColumns = 1000;  // columns of a plot
constexpr std::size_t kMostPanels = 8;
constexpr std::size_t kColours = 10;  // number of colours of kStyle
constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
// A budget beyond this multiple of the highest peak is named, not drawn to scale: the areas would be too
// flat.
constexpr double kInSight = 2;

constexpr SvgStyle kStyle{
    R"(  path { shape-rendering: crispEdges; }
  .panel { fill: #111827; font-size: 14px; font-weight: 600; }
  .peak { fill: #111827; }
  .mark { fill: #111827; stroke: #ffffff; stroke-width: 1.5; }
  .budget { stroke: #dc2626; stroke-width: 1.75; }
  .planned { stroke: #374151; stroke-width: 1; stroke-dasharray: 5 4; }
  .beyond { stroke-dasharray: 2 4; }
  .over, text.budget { fill: #dc2626; stroke: none; font-weight: 600; }
  text.planned { fill: #374151; stroke: none; }
  .c0 { fill: #3566b8; } .c1 { fill: #86b6ea; } .c2 { fill: #9aa3b2; }
  .c3 { fill: #c5a3e0; } .c4 { fill: #e3cf57; } .c5 { fill: #e8963a; }
  .c6 { fill: #2f9e7b; } .c7 { fill: #b8559a; } .c8 { fill: #8a6d5a; }
  .c9 { fill: #5d6f83; }
)",
    R"(    .panel, .peak { fill: #f1f5f9; }
    .mark { fill: #f8fafc; stroke: #0f172a; }
    .budget { stroke: #f87171; }
    .planned { stroke: #cbd5e1; }
    .over, text.budget { fill: #f87171; }
    text.planned { fill: #cbd5e1; }
    .c0 { fill: #3f72c9; } .c1 { fill: #79a9dd; } .c2 { fill: #7b8698; }
    .c3 { fill: #a883c7; } .c4 { fill: #c9b545; } .c5 { fill: #d08430; }
    .c6 { fill: #2a8c6d; } .c7 { fill: #a94e8e; } .c8 { fill: #8f735f; }
    .c9 { fill: #66798e; }
)"};

struct Peak {
  std::int64_t bytes = 0, time = 0;
};

Peak peak_of(const MemoryPanel& panel) {
  Peak peak;
  for (std::size_t i = 0; i < panel.times.size(); ++i)
    if (const std::int64_t total = panel.total(i); total > peak.bytes) peak = {total, panel.times[i]};
  return peak;
}

// The panels shown: the first, the last, and those between with the highest peaks; in order.
std::vector<std::size_t> shown_panels(const std::vector<Peak>& peaks) {
  std::vector<std::size_t> list(peaks.size());
  std::iota(list.begin(), list.end(), 0);
  if (list.size() <= kMostPanels) return list;
  std::swap(list[1], list.back());  // the panels that stay anyway come first
  std::stable_sort(list.begin() + 2, list.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-peaks[a].bytes, a) < std::pair(-peaks[b].bytes, b);
  });
  list.resize(kMostPanels);
  std::ranges::sort(list);
  return list;
}

struct Frame {
  Axis x, y;
  double top = 0, bottom = 0;

  double px(std::int64_t time) const { return x.place(static_cast<double>(time), kLeft, kRight); }
  double py(std::int64_t bytes) const { return y.place(static_cast<double>(bytes), bottom, top); }
  std::size_t column(std::int64_t time) const {
    const double c = x.place(static_cast<double>(time), 0, kColumns);
    return static_cast<std::size_t>(std::clamp(c, 0.0, kColumns - 1.0));
  }
  static double edge(std::size_t column) {
    return kLeft + (kRight - kLeft) * static_cast<double>(column) / kColumns;
  }
};

// The point that each column shows: the highest of those that reach into it.
std::vector<std::size_t> columns_of(const MemoryPanel& panel, const Frame& frame) {
  std::vector<std::size_t> shown(kColumns, kNothing);
  const std::size_t n = panel.times.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t begin = panel.times[i], total = panel.total(i);
    const std::size_t last = i + 1 < n ? frame.column(std::max(begin, panel.times[i + 1] - 1)) : kColumns - 1;
    for (std::size_t c = frame.column(begin); c <= last; ++c)
      if (shown[c] == kNothing || total > panel.total(shown[c])) shown[c] = i;
  }
  return shown;
}

// The area from the axis up to these bytes in each column.
std::string area(const std::vector<std::int64_t>& tops, const Frame& frame) {
  std::string d = fmt::format("M{:g},{:g}", kLeft, frame.bottom), before = fmt::format("{:g}", frame.bottom);
  for (std::size_t c = 0; c < kColumns; ++c) {
    const std::string y = fmt::format("{:.1f}", frame.py(tops[c]));
    if (y == before) continue;
    d += fmt::format("H{:.1f}V{}", Frame::edge(c), y);
    before = y;
  }
  return d + fmt::format("H{:g}V{:g}Z", kRight, frame.bottom);
}

// Draws the sum of all categories first and each lower sum over it, so that no gap shows between them.
std::string areas(const MemoryChart& chart, const MemoryPanel& panel, const Frame& frame) {
  const std::vector<std::size_t> shown = columns_of(panel, frame);
  std::vector<std::int64_t> tops(kColumns, 0);
  std::vector<std::string> layers;
  for (std::size_t k = 0; k < panel.bytes.size(); ++k) {
    const std::vector<std::int64_t>& of = panel.bytes[k];
    const std::int64_t most = of.empty() ? 0 : *std::ranges::max_element(of);
    if (most == 0) continue;
    for (std::size_t c = 0; c < kColumns; ++c)
      if (shown[c] != kNothing) tops[c] += of[shown[c]];
    layers.push_back(fmt::format("<path class=\"c{}\" d=\"", k % kColours) + area(tops, frame) +
                     "\"><title>" + svg_escape(chart.categories[k]) + ", at most " + to_string(Bytes(most)) +
                     "</title></path>\n");
  }
  return std::accumulate(layers.rbegin(), layers.rend(), std::string());
}

std::string horizontal(const char* style, double y) {
  return fmt::format("<line class=\"{}\" x1=\"{:g}\" y1=\"{:.1f}\" x2=\"{:g}\" y2=\"{:.1f}\"/>\n", style,
                     kLeft, y, kRight, y);
}

std::string grid(const Frame& frame) {
  std::string out;
  for (const double tick : frame.y.ticks) {
    const double y = frame.y.place(tick, frame.bottom, frame.top);
    if (tick > 0) out += horizontal("grid", y);
    out += fmt::format("<text x=\"{:g}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 10, y + 4.5,
                       tick > 0 ? frame.y.label(tick).c_str() : "0");
  }
  return out;
}

std::string time_axis_marks(const Frame& frame, bool with_labels) {
  std::string out = horizontal("axis", frame.bottom);
  for (const double tick : frame.x.ticks) {
    const double x = frame.x.place(tick, kLeft, kRight);
    out += fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:g}\" x2=\"{:.1f}\" y2=\"{:g}\"/>\n", x,
                       frame.bottom, x, frame.bottom + 5);
    if (with_labels)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:g}\" text-anchor=\"middle\">{}</text>\n", x,
                         frame.bottom + 22, tick > 0 ? frame.x.label(tick).c_str() : "0");
  }
  if (with_labels)
    out +=
        fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">simulated time of the step</text>\n",
                    (kLeft + kRight) / 2, frame.bottom + 44);
  return out;
}

// Draws the budget and the planned bytes as lines, with their names beside them, apart if the lines are
// close.
std::string limits(std::int64_t budget, std::int64_t planned, const Frame& frame) {
  const bool beyond = static_cast<double>(budget) > frame.y.high;
  const double of_budget = beyond ? frame.top : frame.py(budget), of_planned = frame.py(planned);
  double budget_text = of_budget, planned_text = of_planned;
  constexpr double kApart = 17;
  if (budget > 0 && planned > 0 && std::abs(of_budget - of_planned) < kApart) {
    const double middle = (of_budget + of_planned) / 2, up = budget >= planned ? 1 : -1;
    budget_text = middle - up * kApart / 2;
    planned_text = middle + up * kApart / 2;
  }
  std::string out;
  const auto name = [&](const char* style, const char* what, std::int64_t bytes, double y) {
    out += fmt::format("<text class=\"{}\" x=\"{:g}\" y=\"{:.1f}\">{} {}</text>\n", style, kRight + 8,
                       y + 4.5, what, to_string(Bytes(bytes)));
  };
  if (planned > 0) {
    out += horizontal("planned", of_planned);
    name("planned", "planned", planned, planned_text);
  }
  if (budget > 0) {
    out += horizontal(beyond ? "budget beyond" : "budget", of_budget);
    name("budget", beyond ? "↑ budget" : "budget", budget, budget_text);
  }
  return out;
}

std::string heading(const MemoryChart& chart, const MemoryPanel& panel, const Peak& peak, double y) {
  std::string out = fmt::format("<text class=\"panel\" x=\"{:g}\" y=\"{:g}\">", kLeft, y) +
                    svg_escape(panel.name) + "</text>\n";
  if (peak.bytes == 0)
    return out + fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\">nothing lives here</text>\n",
                             kRight, y);
  out += fmt::format("<text class=\"peak\" x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\">● peak {} at {}", kRight,
                     y, to_string(Bytes(peak.bytes)), to_string(Nanos(peak.time)));
  if (chart.budget > 0 && peak.bytes > chart.budget)
    out += fmt::format(", <tspan class=\"over\">{} above the budget</tspan>",
                       to_string(Bytes(peak.bytes - chart.budget)));
  return out + "</text>\n";
}

std::string peak_mark(const Peak& peak, const Frame& frame) {
  return fmt::format("<circle class=\"mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", frame.px(peak.time),
                     frame.py(peak.bytes));
}

// Draws entries in rows for the categories of some panel. `bottom` becomes the end of the last row.
std::string legend(const MemoryChart& chart, double& bottom) {
  std::string out;
  double x = kLeft, y = kLegendTop;
  for (std::size_t k = 0; k < chart.categories.size(); ++k) {
    const auto lives = [&](const MemoryPanel& p) {
      return std::ranges::any_of(p.bytes[k], [](std::int64_t b) { return b > 0; });
    };
    if (std::ranges::none_of(chart.panels, lives)) continue;
    const double width = 33 + 7.7 * static_cast<double>(chart.categories[k].size());
    if (x > kLeft && x + width - 14 > kWidth) {
      x = kLeft;
      y += kLegendRow;
    }
    out += fmt::format("<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:g}\" width=\"13\" height=\"13\" rx=\"2\"/>\n",
                       k % kColours, x, y - 11);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:g}\">", x + 19, y) + svg_escape(chart.categories[k]) +
           "</text>\n";
    x += width;
  }
  bottom = y;
  return out;
}

double plot_height(std::size_t panels) {
  return panels == 1 ? 300 : panels == 2 ? 210 : panels <= 4 ? 150 : 120;
}

// The scale of all panels, so that they compare.
Axis common_axis(const MemoryChart& chart, const std::vector<Peak>& peaks, int ticks) {
  std::int64_t most = 0;
  for (const Peak& peak : peaks) most = std::max(most, peak.bytes);
  for (const MemoryPanel& panel : chart.panels) most = std::max(most, panel.planned);
  const auto high = static_cast<double>(most), budget = static_cast<double>(chart.budget);
  const bool in_sight = most == 0 || budget <= high * kInSight;
  return bytes_axis(1.06 * (in_sight ? std::max(high, budget) : high), ticks);
}

}  // namespace

std::int64_t MemoryPanel::total(std::size_t point) const {
  std::int64_t sum = 0;
  for (const std::vector<std::int64_t>& category : bytes) sum += category[point];
  return sum;
}

std::string to_svg(const MemoryChart& chart) {
  std::vector<Peak> peaks;
  for (const MemoryPanel& panel : chart.panels) peaks.push_back(peak_of(panel));
  const std::vector<std::size_t> shown = shown_panels(peaks);
  const double height = plot_height(shown.size());
  double y = 0;
  std::string body = legend(chart, y);
  Frame frame{time_axis(static_cast<double>(chart.end), 8),
              common_axis(chart, peaks, shown.size() == 1 ? 6 : 5)};
  for (const std::size_t p : shown) {
    const MemoryPanel& panel = chart.panels[p];
    frame.top = y + kHeading + kGap;
    frame.bottom = y = frame.top + height;
    body += heading(chart, panel, peaks[p], frame.top - 10) + grid(frame) + areas(chart, panel, frame) +
            time_axis_marks(frame, p == shown.back()) + limits(chart.budget, panel.planned, frame);
    if (peaks[p].bytes > 0) body += peak_mark(peaks[p], frame);
  }
  if (chart.panels.size() > shown.size())
    body += fmt::format(
        "<text x=\"{:g}\" y=\"{:g}\">{} of {} are left out: between the first and the last, those with the "
        "highest peaks are shown</text>\n",
        kLeft, y + kFoot + 6, chart.panels.size() - shown.size(), chart.panels.size());
  if (shown.empty())
    body += fmt::format("<text x=\"{:g}\" y=\"{:g}\">nothing to show</text>\n", kLeft, y + 40);
  return svg_begin(kWidth, y + kFoot + (chart.panels.size() > shown.size() ? 22 : 0), kLeft, chart.title,
                   chart.subtitle, kStyle) +
         body + "</svg>\n";
}

}  // namespace hyperrun

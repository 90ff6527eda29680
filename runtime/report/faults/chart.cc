// The picture of what faults cost.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/report/axis.h"
#include "runtime/report/faults/text.h"
#include "runtime/report/svg.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr double kWidth = 920, kLeft = 84, kRight = 690;  // borders of the plots; names stand beside them
constexpr double kFirst = 84, kHeading = 44, kHeight = 300, kFoot = 66;
constexpr double kLine = 20;  // pixels from name to name
constexpr std::size_t kColours = 6;

constexpr SvgStyle kStyle{
    R"(  .name { fill: #111827; }
  .heading { fill: #111827; font-size: 15px; font-weight: 600; }
  .s { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .dot { stroke: #ffffff; stroke-width: 1.5; }
  .s0 { stroke: #9aa3b2; } .s1 { stroke: #3566b8; } .s2 { stroke: #d97b29; }
  .s3 { stroke: #2f9e7b; } .s4 { stroke: #a94e8e; } .s5 { stroke: #8a6d5a; }
  .s1, .s5 { stroke-dasharray: 7 5; }
  .d0 { fill: #9aa3b2; } .d1 { fill: #3566b8; } .d2 { fill: #d97b29; }
  .d3 { fill: #2f9e7b; } .d4 { fill: #a94e8e; } .d5 { fill: #8a6d5a; }
)",
    R"(    .name, .heading { fill: #f1f5f9; }
    .dot { stroke: #0f172a; }
)"};

struct Point {
  double x = 0, share = 0;  // share of 1
  std::string title;
};

struct Line {
  std::string name;
  std::size_t colour = 0;
  double value = 0;  // beside the name
  std::vector<Point> points;
};

struct Panel {
  std::string heading, note, across;
  Axis x;
  std::vector<Line> lines;
};

std::string text_at(const char* style, double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">", style, x, y,
                     anchor) +
         svg_escape(text) + "</text>\n";
}

std::string line_at(const char* style, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
                     x1, y1, x2, y2);
}

std::size_t colour_of(const FaultPolicy& policy) {
  return static_cast<std::size_t>(find_fault_policy(policy.name) - fault_policies().data()) % kColours;
}

// Percent, from a round number below all points to 100.
Axis share_axis(const Panel& panel) {
  double low = 1;
  for (const Line& line : panel.lines)
    for (const Point& p : line.points) low = std::min(low, p.share);
  Axis axis = value_axis(100 * low, 100, 5);
  axis.low = std::max(0.0, axis.low), axis.high = 100;
  std::erase_if(axis.ticks, [&](double tick) { return tick < axis.low || tick > 100; });
  axis.unit = "%";
  return axis;
}

std::string draw_axes(const Panel& panel, const Axis& y, double top, double bottom) {
  std::string out;
  for (const double tick : y.ticks) {
    const double at = y.place(tick, bottom, top);
    out += line_at("grid", kLeft, at, kRight, at);
    out += text_at("", kLeft - 10, at + 4.5, "end", fmt::format("{:.{}f} %", tick, y.decimals));
  }
  out += line_at("axis", kLeft, bottom, kRight, bottom);
  for (const double tick : panel.x.ticks) {
    const double at = panel.x.place(tick, kLeft, kRight);
    out += line_at("axis", at, bottom, at, bottom + 5);
    out += text_at("", at, bottom + 22, "middle",
                   panel.x.unit == "days" ? span_text(tick) : with_separators(std::llround(tick)));
  }
  return out + text_at("", (kLeft + kRight) / 2, bottom + 44, "middle", panel.across);
}

std::string draw_line(const Panel& panel, const Line& line, const Axis& y, double top, double bottom) {
  std::string path, dots;
  for (const Point& p : line.points) {
    const double px = panel.x.place(p.x, kLeft, kRight), py = y.place(100 * p.share, bottom, top);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", px, py);
    dots += fmt::format("<circle class=\"dot d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>",
                        line.colour, px, py) +
            svg_escape(p.title) + "</title></circle>\n";
  }
  return fmt::format("<path class=\"s s{}\" d=\"", line.colour) + path + "\"/>\n" + dots;
}

// Names with their values, the best first.
std::string draw_names(std::vector<Line> lines, double top) {
  std::ranges::stable_sort(lines, std::greater<>(), &Line::value);
  std::string out;
  double y = top + 8;
  for (const Line& line : lines) {
    out += fmt::format("<circle class=\"dot d{}\" cx=\"{:g}\" cy=\"{:.1f}\" r=\"5\"/>\n", line.colour,
                       kRight + 28, y);
    out += text_at("name", kRight + 40, y + 4.5, "start",
                   fmt::format("{}  {:.2f} %", line.name, 100 * line.value));
    y += kLine;
  }
  return out;
}

std::string draw(const Panel& panel, double& y) {
  const double top = y + kHeading, bottom = top + kHeight;
  const Axis share = share_axis(panel);
  std::string out = text_at("heading", kLeft, y + 12, "start", panel.heading);
  out += text_at("", kLeft, y + 31, "start", panel.note);
  out += draw_axes(panel, share, top, bottom);
  for (const Line& line : panel.lines) out += draw_line(panel, line, share, top, bottom);
  out += draw_names(panel.lines, top);
  y = bottom + kFoot;
  return out;
}

Panel against_devices(const FaultStudy& study) {
  Panel panel{.heading = "Goodput against devices",
              .note = fmt::format("saved at the best interval of each; at the right with {} devices",
                                  with_separators(study.scales.back().run.devices)),
              .across = "devices"};
  for (const FaultScale& scale : study.scales) panel.x.ticks.push_back(scale.run.devices);
  std::ranges::sort(panel.x.ticks);
  panel.x.low = panel.x.ticks.front(), panel.x.high = panel.x.ticks.back(), panel.x.logarithmic = true;
  for (std::size_t r = 0; r < study.scales.front().rows.size(); ++r) {
    const FaultPolicy& policy = study.scales.front().rows[r].policy;
    Line line{.name = std::string(policy.name), .colour = colour_of(policy)};
    for (const FaultScale& scale : study.scales) {
      const FaultRow& row = scale.rows[r];
      line.points.push_back(
          {static_cast<double>(scale.run.devices), row.goodput.mean,
           fmt::format("{}, {} devices: {:.2f} %", policy.name, scale.run.devices, 100 * row.goodput.mean)});
    }
    std::ranges::sort(line.points, {}, &Point::x);
    line.value = study.scales.back().rows[r].goodput.mean;
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

// Round spans between `low` and `high` seconds.
std::vector<double> span_ticks(double low, double high) {
  std::vector<double> ticks;
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  for (const double tick : {0.1, 1.0, 5.0, 20.0, kMinute, 3 * kMinute, 10 * kMinute, 30 * kMinute,
                            90 * kMinute, 5 * kHour, kDay, 5 * kDay, 30 * kDay})
    if (tick >= low && tick <= high) ticks.push_back(tick);
  return ticks;
}

Panel against_interval(const FaultScale& scale) {
  Panel panel{.heading = fmt::format("Goodput against the interval between saves, {} devices",
                                     with_separators(scale.run.devices)),
              .note = "of memory and all: between copies in memory; beside the names at the best interval",
              .across = "training between two saves"};
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const FaultRow& row : scale.rows) {
    Line line{
        .name = std::string(row.policy.name), .colour = colour_of(row.policy), .value = row.goodput.mean};
    for (const FaultPoint& p : row.curve) {
      const double seconds = static_cast<double>(p.steps) * scale.run.step;
      low = std::min(low, seconds), high = std::max(high, seconds);
      line.points.push_back({seconds, p.goodput.mean,
                             fmt::format("{}, {} ({} steps): {:.2f} %", row.policy.name, span_text(seconds),
                                         p.steps, 100 * p.goodput.mean)});
    }
    panel.lines.push_back(std::move(line));
  }
  if (high <= low) high = 2 * low;
  panel.x = {.low = low, .high = high, .ticks = span_ticks(low, high), .unit = "days", .logarithmic = true};
  return panel;
}

}  // namespace

std::string to_svg(const FaultStudy& study) {
  double y = kFirst;
  std::string body;
  if (study.scales.size() > 1) body += draw(against_devices(study), y);
  const FaultScale& largest =
      *std::ranges::max_element(study.scales, {}, [](const FaultScale& s) { return s.run.devices; });
  body += draw(against_interval(largest), y);
  const std::string subtitle =
      fmt::format("simulated: {} histories of {}, faults of \"{}\"", study.spec.samples,
                  span_text(study.spec.horizon), study.spec.name);
  return svg_begin(kWidth, y, kLeft, "What faults cost " + study.job, subtitle, kStyle) + body + "</svg>\n";
}

}  // namespace hyperrun

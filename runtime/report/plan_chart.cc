#include "runtime/report/plan_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/units.h"
#include "runtime/report/axis.h"
#include "runtime/report/svg.h"

namespace hyperrun {
namespace {

constexpr double kWidth = 960, kLeft = 40,
                 kRight = 830;               // borders of the bars; their totals stand beside them
constexpr double kLegend = 88, kBars = 112;  // tops of the legend and the bars
constexpr double kRow = 46, kNameHeight = 18, kBarHeight = 17;
constexpr double kFrontLeft = 96, kFrontRight = 800, kFrontHeight = 300, kFrontHeading = 76;
constexpr double kFoot = 62;         // height below the last axis
constexpr double kPartInSight = 46;  // pixels: a wider part has its time written in it
constexpr double kApart = 17;        // pixels between lines of text
// A budget beyond this multiple of all points is named, not drawn to scale.
constexpr std::int64_t kInSight = 2;
constexpr std::size_t kMostBars = 24;
constexpr std::size_t kColours = 6;

constexpr SvgStyle kStyle{
    R"(  .name { fill: #111827; }
  .heading { fill: #111827; font-size: 15px; font-weight: 600; }
  .in { fill: #ffffff; font-size: 11px; }
  .step { fill: #111827; font-weight: 600; }
  .bound { stroke: #dc2626; stroke-width: 1.75; stroke-dasharray: 4 3; }
  .budget { stroke: #dc2626; stroke-width: 1.5; stroke-dasharray: 2 4; }
  text.budget { fill: #dc2626; stroke: none; }
  .p0 { fill: #3566b8; } .p1 { fill: #d97b29; } .p2 { fill: #a94e8e; }
  .p3 { fill: #9aa3b2; } .p4 { fill: #2f9e7b; } .p5 { fill: #8a6d5a; }
  .s { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .dot { stroke: #ffffff; stroke-width: 1.5; }
  .s0 { stroke: #86b6ea; } .s1 { stroke: #3566b8; } .s2 { stroke: #d97b29; }
  .s3 { stroke: #2f9e7b; } .s4 { stroke: #a94e8e; } .s5 { stroke: #8a6d5a; }
  .d0 { fill: #86b6ea; } .d1 { fill: #3566b8; } .d2 { fill: #d97b29; }
  .d3 { fill: #2f9e7b; } .d4 { fill: #a94e8e; } .d5 { fill: #8a6d5a; }
)",
    R"(    .name, .heading, .step { fill: #f1f5f9; }
    .bound, .budget { stroke: #f87171; }
    text.budget { fill: #f87171; }
    .dot { stroke: #0f172a; }
)"};

std::string time_text(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

double step_of(const PlanBar& bar) { return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0); }

std::string text_at(const char* style, double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">", style, x, y,
                     anchor) +
         svg_escape(text) + "</text>\n";
}

std::string line(const char* style, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
                     x1, y1, x2, y2);
}

// The approximate width of a text of 13 pixels' height.
double width_of(const std::string& text) { return 7.7 * static_cast<double>(text.size()); }

// --- Ranking --------------------------------------------------------------------------------------------

std::string legend(const PlanChart& chart) {
  std::string out;
  double x = kLeft;
  for (std::size_t p = 0; p < chart.parts.size(); ++p) {
    out += fmt::format("<rect class=\"p{}\" x=\"{:.1f}\" y=\"{:g}\" width=\"13\" height=\"13\" rx=\"2\"/>\n",
                       p % kColours, x, kLegend - 11);
    out += text_at("", x + 19, kLegend, "start", chart.parts[p]);
    x += 36 + width_of(chart.parts[p]);
  }
  if (chart.bound <= 0) return out;
  return out + line("bound", x, kLegend - 5, x + 18, kLegend - 5) +
         text_at("", x + 25, kLegend, "start", "no strategy is below " + time_text(chart.bound));
}

// The place of a part's text, so that the bound's line does not cross it.
double beside(double bound, double middle, double from, double to) {
  constexpr double kHalf = kPartInSight / 2;
  if (std::abs(bound - middle) >= kHalf) return middle;
  const double before = bound - kHalf, behind = bound + kHalf;
  return before - kHalf >= from ? before : behind + kHalf <= to ? behind : middle;
}

std::string bar(const PlanChart& chart, const PlanBar& b, double y, const Axis& axis) {
  const double step = step_of(b), top = y + kNameHeight, bound = axis.place(chart.bound, kLeft, kRight);
  std::string out = text_at("name", kLeft, y + 11, "start", b.name);
  double until = 0;
  for (std::size_t p = 0; p < b.parts.size(); ++p) {
    const double from = axis.place(until, kLeft, kRight);
    until += b.parts[p];
    const double width = axis.place(until, kLeft, kRight) - from;
    if (width <= 0) continue;
    const std::string share = fmt::format("{:.1f} %", 100 * b.parts[p] / step);
    out +=
        fmt::format("<rect class=\"p{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:g}\"><title>",
                    p % kColours, from, top, width, kBarHeight) +
        svg_escape(chart.parts[p] + ": " + time_text(b.parts[p]) + ", " + share) + "</title></rect>\n";
    if (width >= kPartInSight)
      out += text_at("in", beside(bound, from + width / 2, from, from + width), top + 12.5, "middle", share);
  }
  return out + text_at("step", axis.place(step, kLeft, kRight) + 8, top + 13, "start", time_text(step));
}

// Draws the bars; `y` becomes their end.
std::string ranking(const PlanChart& chart, double& y) {
  const std::size_t shown = std::min(chart.bars.size(), kMostBars);
  double most = chart.bound;
  for (std::size_t i = 0; i < shown; ++i) most = std::max(most, step_of(chart.bars[i]));
  const Axis axis = time_axis(most, 8);
  const double bottom = kBars + static_cast<double>(shown) * kRow;
  std::string out = legend(chart);
  for (const double tick : axis.ticks) {
    const double x = axis.place(tick, kLeft, kRight);
    out += line("grid", x, kBars - 4, x, bottom);
    out += text_at("", x, bottom + 20, "middle", tick > 0 ? axis.label(tick) : "0");
  }
  out += line("axis", kLeft, bottom, kRight, bottom);
  out += text_at("", (kLeft + kRight) / 2, bottom + 42, "middle", "simulated time of a step");
  for (std::size_t i = 0; i < shown; ++i) {
    const double top = kBars + static_cast<double>(i) * kRow;
    out += bar(chart, chart.bars[i], top, axis);
    if (chart.bound <= 0) continue;
    const double x = axis.place(chart.bound, kLeft, kRight);
    out += line("bound", x, top + kNameHeight - 3, x, top + kNameHeight + kBarHeight + 3);
  }
  y = bottom + kFoot;
  if (shown == chart.bars.size()) return out;
  out += text_at("", kLeft, y, "start", fmt::format("and {} more", chart.bars.size() - shown));
  y += kApart;
  return out;
}

// --- Front ----------------------------------------------------------------------------------------------

struct Frame {
  Axis x, y;
  double top = 0, bottom = 0;

  double px(std::int64_t bytes) const { return x.place(static_cast<double>(bytes), kFrontLeft, kFrontRight); }
  double py(double time) const { return y.place(time, bottom, top); }
};

std::string grid(const Frame& frame) {
  std::string out;
  for (const double tick : frame.y.ticks) {
    const double y = frame.y.place(tick, frame.bottom, frame.top);
    out += line("grid", kFrontLeft, y, kFrontRight, y);
    out += text_at("", kFrontLeft - 10, y + 4.5, "end", frame.y.label(tick));
  }
  out += line("axis", kFrontLeft, frame.bottom, kFrontRight, frame.bottom);
  for (const double tick : frame.x.ticks) {
    const double x = frame.x.place(tick, kFrontLeft, kFrontRight);
    out += line("axis", x, frame.bottom, x, frame.bottom + 5);
    out += text_at("", x, frame.bottom + 22, "middle", tick > 0 ? frame.x.label(tick) : "0");
  }
  return out + text_at("", (kFrontLeft + kFrontRight) / 2, frame.bottom + 44, "middle", "HBM of a device");
}

// The steps of the front: with a point's memory the best takes its time, and as long with more, up to the
// next point.
std::string steps(const std::vector<PlanPoint>& points, std::size_t colour, const Frame& frame) {
  std::string d;
  for (const PlanPoint& p : points)
    d += d.empty() ? fmt::format("M{:.1f},{:.1f}", frame.px(p.bytes), frame.py(p.time))
                   : fmt::format("H{:.1f}V{:.1f}", frame.px(p.bytes), frame.py(p.time));
  std::string out =
      fmt::format("<path class=\"s s{}\" d=\"", colour) + d + fmt::format("H{:g}\"/>\n", kFrontRight);
  for (const PlanPoint& p : points)
    out += fmt::format("<circle class=\"dot d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>", colour,
                       frame.px(p.bytes), frame.py(p.time)) +
           svg_escape(p.name + ": " + time_text(p.time) + ", " + to_string(Bytes(p.bytes))) +
           "</title></circle>\n";
  return out;
}

// Places of texts wanted at `wanted`, ascending. Texts that would overlap stand one below the other, around
// the middle of their wanted places.
std::vector<double> apart(const std::vector<double>& wanted) {
  struct Block {
    double sum;
    std::size_t texts;
    double middle() const { return sum / static_cast<double>(texts); }
    double half() const { return kApart * static_cast<double>(texts) / 2; }
  };
  std::vector<Block> blocks;
  for (const double y : wanted) {
    blocks.push_back({y, 1});
    while (blocks.size() > 1) {
      Block &last = blocks.back(), &above = blocks[blocks.size() - 2];
      if (above.middle() + above.half() <= last.middle() - last.half()) break;
      above.sum += last.sum, above.texts += last.texts;
      blocks.pop_back();
    }
  }
  std::vector<double> places;
  for (const Block& b : blocks)
    for (std::size_t i = 0; i < b.texts; ++i)
      places.push_back(b.middle() - b.half() + kApart * (static_cast<double>(i) + 0.5));
  return places;
}

// Writes names beside the ends of the lines.
std::string names(const std::vector<PlanSeries>& front, const Frame& frame) {
  std::vector<std::pair<double, std::size_t>> ends;  // height and index of the line
  for (std::size_t i = 0; i < front.size(); ++i) ends.emplace_back(frame.py(front[i].points.back().time), i);
  std::ranges::sort(ends);
  std::vector<double> wanted;
  for (const auto& [y, series] : ends) wanted.push_back(y);
  const std::vector<double> places = apart(wanted);
  std::string out;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t series = ends[i].second;
    out += fmt::format("<circle class=\"dot d{}\" cx=\"{:g}\" cy=\"{:.1f}\" r=\"5\"/>\n", series % kColours,
                       kFrontRight + 18, places[i]);
    out += text_at("name", kFrontRight + 29, places[i] + 4.5, "start", front[series].name);
  }
  return out;
}

std::string front(const PlanChart& chart, double& y) {
  std::vector<PlanSeries> series = chart.front;
  double low = series.front().points.front().time, high = low;
  std::int64_t most = 0;
  for (PlanSeries& s : series) {
    std::ranges::sort(s.points, {}, &PlanPoint::bytes);
    for (const PlanPoint& p : s.points) {
      low = std::min(low, p.time), high = std::max(high, p.time), most = std::max(most, p.bytes);
    }
  }
  const bool in_sight = chart.budget > 0 && chart.budget <= kInSight * most;
  if (in_sight) most = std::max(most, chart.budget);
  Frame frame{bytes_axis(1.02 * static_cast<double>(most), 8), time_range_axis(low, high, 6)};
  frame.top = y + kFrontHeading;
  frame.bottom = frame.top + kFrontHeight;
  std::string out = text_at("heading", kLeft, y + 30, "start", "Step time against memory and devices");
  out += text_at("", kLeft, y + 50, "start",
                 "each point is the best that was found with so much HBM; the batch is the same for all");
  out += grid(frame);
  const std::string budget = "budget " + to_string(Bytes(chart.budget));
  if (in_sight) {
    const double x = frame.px(chart.budget);
    out += line("budget", x, frame.top, x, frame.bottom);
    out += text_at("budget", x, frame.top - 6, "end", budget);
  } else if (chart.budget > 0) {
    out += text_at("budget", kFrontRight, frame.top - 6, "end", budget + " →");
  }
  for (std::size_t i = 0; i < series.size(); ++i) out += steps(series[i].points, i % kColours, frame);
  y = frame.bottom + kFoot;
  return out + names(series, frame);
}

}  // namespace

std::string to_svg(const PlanChart& chart) {
  double y = kBars;
  std::string body;
  if (chart.bars.empty()) {
    body = text_at("", kLeft, y, "start", "no strategy fits");
    y += kApart;
  } else {
    body = ranking(chart, y);
  }
  if (!chart.note.empty()) {
    body += text_at("", kLeft, y, "start", chart.note);
    y += kApart;
  }
  if (std::ranges::any_of(chart.front, [](const PlanSeries& s) { return !s.points.empty(); })) {
    PlanChart drawn = chart;
    std::erase_if(drawn.front, [](const PlanSeries& s) { return s.points.empty(); });
    body += front(drawn, y);
  }
  return svg_begin(kWidth, y, kLeft, chart.title, chart.subtitle, kStyle) + body + "</svg>\n";
}

}  // namespace hyperrun

#include "runtime/report/loss_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/report/axis.h"
#include "runtime/report/svg.h"

namespace hyperrun {
namespace {

constexpr double kWidth = 880, kHeight = 460;
constexpr double kLeft = 72, kRight = 806, kTop = 84, kBottom = 398;  // borders of the plot
constexpr std::size_t kSmoothFrom = 40;                               // fewer points are shown unsmoothed

constexpr SvgStyle kStyle{
    R"(  .each { fill: none; stroke: #93b4f5; stroke-width: 1; stroke-linejoin: round; stroke-opacity: 0.75; }
  .loss { fill: none; stroke: #1d4ed8; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
  .last { fill: #1d4ed8; stroke: #ffffff; stroke-width: 2; }
)",
    R"(    .each { stroke: #3b5fae; }
    .loss { stroke: #7aa5ff; }
    .last { fill: #7aa5ff; stroke: #0f172a; }
)"};

// Smooths by a centred mean: unlike a trailing one it does not lag behind a falling curve. The window shrinks
// towards the beginning, where a curve falls steeply. At the end it loses one side only, so that one step's
// noise does not bend the curve.
std::vector<LossPoint> smooth(const std::vector<LossPoint>& points) {
  std::vector<double> sums = {0};
  for (const auto& p : points) sums.push_back(sums.back() + p.loss);
  std::size_t n = points.size(), half = std::max<std::size_t>(1, n / 50);
  std::vector<LossPoint> out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t before = std::min(half, i), after = std::min(before, n - 1 - i);
    out.push_back(
        {points[i].step, (sums[i + after + 1] - sums[i - before]) / static_cast<double>(before + after + 1)});
  }
  return out;
}

struct Frame {
  Axis x, y;

  double px(std::int64_t step) const { return x.place(static_cast<double>(step), kLeft, kRight); }
  double py(double loss) const { return y.place(loss, kBottom, kTop); }
};

// A path "M x,y L x,y ...". Among points that share a pixel column only the first, least, most and last are
// drawn: the picture is the same and stays small for a long run.
std::string path(const std::vector<LossPoint>& points, const Frame& frame) {
  std::string d;
  auto add = [&](const LossPoint& p) {
    d += fmt::format("{}{:.1f},{:.1f}", d.empty() ? "M" : " L", frame.px(p.step), frame.py(p.loss));
  };
  auto column = [&](const LossPoint& p) { return std::floor(frame.px(p.step)); };
  for (auto begin = points.begin(); begin != points.end();) {
    auto end = std::find_if(begin, points.end(), [&](const auto& p) { return column(p) != column(*begin); });
    if (end - begin <= 4) {
      std::for_each(begin, end, add);
    } else {
      auto [least, most] = std::minmax_element(begin, end, [](auto& a, auto& b) { return a.loss < b.loss; });
      add(*begin);
      add(*std::min(least, most));
      add(*std::max(least, most));
      add(*(end - 1));
    }
    begin = end;
  }
  return d;
}

// Cuts the points into runs without a gap: a loss that is not finite breaks the line.
std::vector<std::vector<LossPoint>> pieces(const std::vector<LossPoint>& points) {
  std::vector<std::vector<LossPoint>> out;
  bool open = false;
  for (const auto& p : points) {
    if (!std::isfinite(p.loss)) {
      open = false;
      continue;
    }
    if (!open) out.emplace_back();
    open = true;
    out.back().push_back(p);
  }
  return out;
}

std::string grid(const Frame& frame, const std::string& what) {
  std::string out;
  for (double tick : frame.y.ticks) {
    double y = frame.y.place(tick, kBottom, kTop);
    out += fmt::format("<line class=\"grid\" x1=\"{:g}\" y1=\"{:.1f}\" x2=\"{:g}\" y2=\"{:.1f}\"/>\n", kLeft,
                       y, kRight, y);
    out += fmt::format("<text x=\"{:g}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 12, y + 4.5,
                       frame.y.label(tick));
  }
  out += fmt::format("<line class=\"axis\" x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\"/>\n", kLeft,
                     kBottom, kRight, kBottom);
  for (double tick : frame.x.ticks) {
    double x = frame.x.place(tick, kLeft, kRight);
    out += fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:g}\" x2=\"{:.1f}\" y2=\"{:g}\"/>\n", x,
                       kBottom, x, kBottom + 5);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:g}\" text-anchor=\"middle\">{}</text>\n", x, kBottom + 22,
                       frame.x.label(tick));
  }
  out += fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">step</text>\n", (kLeft + kRight) / 2,
                     kBottom + 46);
  double middle = (kTop + kBottom) / 2;
  out += fmt::format("<text transform=\"translate(20 {:g}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     middle, what);
  return out;
}

std::string curve(const std::vector<LossPoint>& piece, const Frame& frame) {
  std::string out;
  bool noisy = piece.size() >= kSmoothFrom;
  if (noisy) out += "<path class=\"each\" d=\"" + path(piece, frame) + "\"/>\n";
  return out + "<path class=\"loss\" d=\"" + path(noisy ? smooth(piece) : piece, frame) + "\"/>\n";
}

std::string end_mark(const LossPoint& last, const Frame& frame) {
  double x = frame.px(last.step), y = frame.py(last.loss);
  return fmt::format("<circle class=\"last\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x, y) +
         fmt::format("<text class=\"value\" x=\"{:.1f}\" y=\"{:.1f}\">{:.4g}</text>\n", x + 11, y + 5,
                     last.loss);
}

Frame frame_of(const std::vector<std::vector<LossPoint>>& all) {
  LossPoint front = all.front().front();
  double low = front.loss, high = front.loss;
  for (const auto& piece : all) {
    for (const auto& p : piece) {
      low = std::min(low, p.loss);
      high = std::max(high, p.loss);
    }
  }
  auto first = static_cast<double>(front.step), last = static_cast<double>(all.back().back().step);
  return {whole_axis(first, last, 8), value_axis(low, high, 6)};
}

}  // namespace

std::string to_svg(const LossChart& chart) {
  std::string out = svg_begin(kWidth, kHeight, kLeft, chart.title, chart.subtitle, kStyle);
  auto all = pieces(chart.points);
  if (all.empty()) {
    out += fmt::format("<text x=\"{:g}\" y=\"{:g}\">{}</text>\n", kLeft, (kTop + kBottom) / 2,
                       chart.points.empty() ? "no step has ended" : ("no finite " + chart.what));
  } else {
    Frame frame = frame_of(all);
    out += grid(frame, chart.what);
    for (const auto& piece : all) out += curve(piece, frame);
    out += end_mark(all.back().back(), frame);
  }
  return out + "</svg>\n";
}

}  // namespace hyperrun

#include "runtime/report/memory_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/report/svg_text.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMi = 1 << 20;
// Positions in a picture of one panel whose legend has one row.
constexpr double kLeft = 84, kRight = 724, kTop = 132, kBottom = 432;

// A drawn area: its height from each (x, y) on.
struct Area {
  std::vector<std::pair<double, double>> steps;
  double top() const { return std::ranges::min(steps, {}, &std::pair<double, double>::second).second; }
  double at(double x) const {
    double y = kBottom;
    for (const auto& [from, height] : steps)
      if (from <= x) y = height;
    return y;
  }
};

// The areas in the order of drawing, from the top of the stack down.
std::vector<Area> areas(const std::string& svg) {
  std::vector<Area> list;
  const std::regex path("<path class=\"c\\d\" d=\"M[^H]*([^Z]*)Z"), step("H([0-9.]+)V([0-9.]+)");
  for (std::sregex_iterator p(svg.begin(), svg.end(), path), end; p != end; ++p) {
    const std::string d = (*p)[1];
    Area& area = list.emplace_back();
    for (std::sregex_iterator s(d.begin(), d.end(), step); s != end; ++s)
      area.steps.emplace_back(std::stod((*s)[1]), std::stod((*s)[2]));
    area.steps.pop_back();  // back on the axis
  }
  return list;
}

double y_of_line(const std::string& svg, const std::string& style) {
  std::smatch found;
  const std::regex line("<line class=\"" + style + "\" [^>]*y1=\"([0-9.]+)\"");
  return std::regex_search(svg, found, line) ? std::stod(found[1]) : -1;
}

// 6 MiB of weights live all the time; activations grow to 8 MiB and shrink again.
MemoryChart hill() {
  MemoryPanel panel{"pp 0", 15 * kMi, {0, 100, 200, 300}, {{}, {}}};
  panel.bytes[0] = {6 * kMi, 6 * kMi, 6 * kMi, 6 * kMi};
  panel.bytes[1] = {0, 4 * kMi, 8 * kMi, 0};
  return {"job: HBM", "2 devices", 16 * kMi, 400, {"weights", "activations"}, {panel}};
}

double y_of(std::int64_t bytes, std::int64_t highest) {
  return kBottom - (kBottom - kTop) * static_cast<double>(bytes) / (1.06 * static_cast<double>(highest));
}

TEST(MemoryChart, CategoriesAreStacked) {
  const std::string svg = to_svg(hill());
  expect_well_formed(svg);
  const std::vector<Area> drawn = areas(svg);
  ASSERT_EQ(drawn.size(), 2u);
  const auto x = [](double time) { return kLeft + (kRight - kLeft) * time / 400; };
  for (const auto& [time, bytes] :
       {std::pair{50.0, 6 * kMi}, {150, 10 * kMi}, {250, 14 * kMi}, {350, 6 * kMi}}) {
    EXPECT_NEAR(drawn[0].at(x(time)), y_of(bytes, 16 * kMi), 0.06) << time;
    EXPECT_NEAR(drawn[1].at(x(time)), y_of(6 * kMi, 16 * kMi), 0.06) << time;
  }
  EXPECT_THAT(svg, HasSubstr(">weights</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>activations, at most 8.00 MiB</title>"));
  EXPECT_THAT(svg, HasSubstr("peak 14.0 MiB at 200 ns</text>"));
}

TEST(MemoryChart, BudgetAndPlanAreLinesWithNames) {
  MemoryChart chart = hill();
  std::string svg = to_svg(chart);
  EXPECT_NEAR(y_of_line(svg, "budget"), y_of(16 * kMi, 16 * kMi), 0.06);
  EXPECT_NEAR(y_of_line(svg, "planned"), y_of(15 * kMi, 16 * kMi), 0.06);
  EXPECT_THAT(svg, HasSubstr(">budget 16.0 MiB</text>"));
  EXPECT_THAT(svg, HasSubstr(">planned 15.0 MiB</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("above the budget")));

  chart.budget = 9 * kMi;
  svg = to_svg(chart);
  EXPECT_NEAR(y_of_line(svg, "budget"), y_of(9 * kMi, 15 * kMi), 0.06);
  EXPECT_GT(y_of_line(svg, "budget"), areas(svg)[0].top()) << "the areas go beyond it";
  EXPECT_THAT(svg, HasSubstr("5.00 MiB above the budget"));

  chart.budget = 1024 * kMi;  // areas would be flat
  svg = to_svg(chart);
  EXPECT_NEAR(areas(svg)[0].top(), y_of(14 * kMi, 15 * kMi), 0.06);
  EXPECT_NEAR(y_of_line(svg, "budget beyond"), kTop, 0.06);
  EXPECT_THAT(svg, HasSubstr("↑ budget 1.00 GiB</text>"));
}

// A moment of no length among very many others is drawn, and the picture stays small.
TEST(MemoryChart, APeakIsNotLostAmongMany) {
  MemoryChart chart = hill();
  chart.end = 1'000'000;
  MemoryPanel& panel = chart.panels[0];
  panel = {"", 0, {}, {{}, {}}};
  for (std::int64_t t = 0; t < chart.end; t += 2) {
    panel.times.push_back(t);
    panel.bytes[0].push_back(3 * kMi);
    panel.bytes[1].push_back((t * 7919) % (4 * kMi));
    if (t != 654'320) continue;
    panel.times.push_back(t);
    panel.bytes[0].push_back(2 * kMi);
    panel.bytes[1].push_back(11 * kMi);
  }
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 60'000u);
  EXPECT_THAT(svg, HasSubstr("peak 13.0 MiB at 654 us"));
  const std::vector<Area> drawn = areas(svg);
  const double x = kLeft + (kRight - kLeft) * 0.65432;
  EXPECT_NEAR(drawn[0].top(), y_of(13 * kMi, 16 * kMi), 0.06);
  EXPECT_NEAR(drawn[0].at(x), drawn[0].top(), 1e-9) << "where it is";
  EXPECT_NEAR(drawn[1].at(x), y_of(2 * kMi, 16 * kMi), 0.06) << "of what it consists";
}

TEST(MemoryChart, OfManyPanelsTheHighestAreDrawn) {
  MemoryChart chart = hill();
  for (int i = 1; i < 12; ++i) {
    chart.panels.push_back(chart.panels[0]);
    chart.panels.back().name = "pp " + std::to_string(i);
    chart.panels.back().bytes[1][2] += i % 4 * kMi;
  }
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  // 3, 7, 11 have the most, then 2, 6, 10, then 1 and 5 before 9; 0 and 11 are there anyway.
  for (const int shown : {0, 1, 2, 3, 6, 7, 10, 11})
    EXPECT_THAT(svg, HasSubstr(">pp " + std::to_string(shown) + "</text>"));
  EXPECT_EQ(count(svg, "class=\"panel\""), 8u);
  EXPECT_THAT(svg, HasSubstr(">4 of 12 are left out: "));
}

TEST(MemoryChart, TextIsEscaped) {
  MemoryChart chart = hill();
  chart.title = "a <job> & \"more\"\x01";
  chart.panels[0].name = "<pp>";
  chart.categories[0] = "w&b";
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("a &lt;job&gt; &amp; &quot;more&quot;\uFFFD</text>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;pp&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr(">w&amp;b</text>"));
}

TEST(MemoryChart, NothingOrOnePointIsAPictureToo) {
  MemoryChart chart = hill();
  chart.panels[0] = {"", 0, {0}, {{5}, {0}}};
  for (const std::int64_t end : {400, 0}) {
    chart.end = end;
    expect_well_formed(to_svg(chart));
    ASSERT_EQ(areas(to_svg(chart)).size(), 1u) << "what never lives has no area";
  }
  EXPECT_THAT(to_svg(chart), Not(HasSubstr(">activations</text>")));
  for (const std::int64_t budget : {16 * kMi, std::int64_t{0}}) {
    chart.budget = budget;
    chart.panels = {{"", 0, {}, {{}, {}}}};
    expect_well_formed(to_svg(chart));
    EXPECT_THAT(to_svg(chart), HasSubstr("nothing lives here"));
    chart.panels = {{"", 0, {0}, {{0}, {0}}}};
    expect_well_formed(to_svg(chart));
    chart.panels = {};
    expect_well_formed(to_svg(chart));
  }
}

}  // namespace
}  // namespace hyperrun::testing

#include "runtime/report/plan_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/report/svg_text.h"

namespace hyperrun {
namespace {

using testing::count;
using testing::expect_well_formed;
using ::testing::HasSubstr;

PlanChart ranking(std::size_t bars) {
  PlanChart chart{"a <job>: plans", "8 devices", {"compute", "bubble"}, {}, 0, {}, 0};
  for (std::size_t i = 0; i < bars; ++i)
    chart.bars.push_back({"dp 4 & tp 2", {6e6 + 1e5 * static_cast<double>(i), 2e6}});
  return chart;
}

TEST(PlanChart, BarsAreAsLongAsTheirParts) {
  PlanChart chart = ranking(1);
  chart.bars[0].parts = {6e6, 2e6};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  // The bars lie between 40 and 830; the longest fills them.
  EXPECT_THAT(svg, HasSubstr("<rect class=\"p0\" x=\"40.0\" y=\"130.0\" width=\"592.5\""));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"p1\" x=\"632.5\" y=\"130.0\" width=\"197.5\""));
  EXPECT_THAT(svg, HasSubstr("a &lt;job&gt;: plans"));
  EXPECT_THAT(svg, HasSubstr("dp 4 &amp; tp 2"));
  EXPECT_THAT(svg, HasSubstr(">8.00 ms</text>"));
}

TEST(PlanChart, TheBoundIsMarkedInEachBarAndNamed) {
  PlanChart chart = ranking(3);
  chart.bound = 5e6;
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<line class=\"bound\""), 4U);
  EXPECT_THAT(svg, HasSubstr("no strategy is below 5.00 ms"));
}

TEST(PlanChart, ManyBarsAreCounted) {
  const std::string svg = to_svg(ranking(100));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"step\""), 24U);
  EXPECT_THAT(svg, HasSubstr("and 76 more"));
}

TEST(PlanChart, TheFrontGoesInSteps) {
  PlanChart chart = ranking(1);
  chart.budget = 64LL << 30;
  chart.front = {{"4 devices", {{32LL << 30, 2e9, "a"}, {16LL << 30, 4e9, "b"}}},
                 {"8 devices", {{8LL << 30, 1e9, "c"}}}};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<path class=\"s s"), 2U);
  EXPECT_EQ(count(svg, "<title>b: 4.00 s, 16.0 GiB</title>"), 1U);
  EXPECT_THAT(svg, HasSubstr("budget 64.0 GiB"));
  // The line goes from the least memory on: right, then down.
  const auto path = svg.find("<path class=\"s s0\" d=\"M");
  ASSERT_NE(path, std::string::npos);
  EXPECT_THAT(svg.substr(path, 80), ::testing::ContainsRegex("M[0-9.]+,[0-9.]+H[0-9.]+V[0-9.]+H800"));
}

// The heights of the lines' names: y="..." of "line 4".
std::vector<double> places_of_names(const std::string& svg) {
  std::vector<double> list;
  for (auto at = svg.find(">line "); at != std::string::npos; at = svg.find(">line ", at + 1))
    list.push_back(std::stod(svg.substr(svg.rfind("y=\"", at) + 3)));
  std::ranges::sort(list);
  return list;
}

TEST(PlanChart, NamesOfLinesDoNotOverlap) {
  PlanChart chart = ranking(1);
  for (int i = 0; i < 6; ++i)
    chart.front.push_back({"line " + std::to_string(i), {{8LL << 30, 1e9 + 1e6 * i, ""}}});
  chart.front.push_back({"line 6", {{8LL << 30, 9e9, ""}}});
  const std::vector<double> places = places_of_names(to_svg(chart));
  ASSERT_EQ(places.size(), 7U);
  for (std::size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(places[i] - places[i - 1], 17 - 0.11) << "lines of text are 17 pixels apart, to a tenth";
}

TEST(PlanChart, ABudgetThatIsFarAwayIsNamedAndLeavesThePointsTheirRoom) {
  PlanChart chart = ranking(1);
  chart.budget = 64LL << 30;
  chart.front = {{"4 devices", {{2LL << 30, 2e9, "a"}}}};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("budget 64.0 GiB →"));
  EXPECT_EQ(count(svg, "<line class=\"budget\""), 0U);
  EXPECT_THAT(svg, HasSubstr(">2.0 GiB<"));
}

TEST(PlanChart, NothingIsAPictureToo) {
  expect_well_formed(to_svg(PlanChart{}));
  PlanChart chart = ranking(1);
  chart.front = {{"4 devices", {}}};
  expect_well_formed(to_svg(chart));
  chart.front = {{"4 devices", {{0, 1e9, "a"}}}};
  expect_well_formed(to_svg(chart));
}

}  // namespace
}  // namespace hyperrun

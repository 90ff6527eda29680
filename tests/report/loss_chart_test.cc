#include "runtime/report/loss_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/report/axis.h"
#include "tests/report/svg_text.h"

namespace hyperrun {
namespace {

using testing::count;
using ::testing::ElementsAre;
using testing::expect_well_formed;
using ::testing::HasSubstr;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> out;
  for (double t : axis.ticks) out.push_back(axis.label(t));
  return out;
}

TEST(Axis, TicksAreRound) {
  EXPECT_THAT(labels(value_axis(2.53, 8.1, 6)), ElementsAre("2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_THAT(labels(value_axis(0.101, 0.149, 5)),
              ElementsAre("0.10", "0.11", "0.12", "0.13", "0.14", "0.15"));
  EXPECT_THAT(labels(value_axis(-3, 7, 4)), ElementsAre("-5.0", "-2.5", "0.0", "2.5", "5.0", "7.5"));
  EXPECT_THAT(labels(whole_axis(1, 3, 8)), ElementsAre("1", "2", "3"));
  EXPECT_THAT(labels(whole_axis(1, 100'000, 6)),
              ElementsAre("20,000", "40,000", "60,000", "80,000", "100,000"));
}

TEST(Axis, BytesAreCountedInPowersOfTwo) {
  EXPECT_THAT(labels(bytes_axis(0x1p30 * 15, 4)), ElementsAre("0 GiB", "4 GiB", "8 GiB", "12 GiB"));
  EXPECT_THAT(labels(bytes_axis(0x1p20 * 1.5, 6)), ElementsAre("0.00 MiB", "0.25 MiB", "0.50 MiB", "0.75 MiB",
                                                               "1.00 MiB", "1.25 MiB", "1.50 MiB"));
  EXPECT_THAT(labels(bytes_axis(3, 6)), ElementsAre("0 B", "1 B", "2 B", "3 B"));
  EXPECT_THAT(labels(bytes_axis(0, 6)), ElementsAre("0 B", "1 B"));
  EXPECT_THAT(labels(bytes_axis(1023 * 0x1p10, 2)), ElementsAre("0 KiB", "512 KiB"));
}

TEST(Axis, TimesHaveTheUnitOfTheWhole) {
  EXPECT_THAT(labels(time_axis(45e6, 5)), ElementsAre("0 ms", "10 ms", "20 ms", "30 ms", "40 ms"));
  EXPECT_THAT(labels(time_axis(1.2e9, 3)), ElementsAre("0.0 s", "0.5 s", "1.0 s"));
  EXPECT_THAT(labels(time_axis(999, 4)), ElementsAre("0 ns", "250 ns", "500 ns", "750 ns"));
  EXPECT_THAT(labels(time_axis(0, 4)), ElementsAre("0 ns", "1 ns"));
}

TEST(Axis, TimesThatAreFarApartHaveEqualRatios) {
  const Axis axis = time_range_axis(0.3e9, 6e9, 6);
  EXPECT_THAT(labels(axis), ElementsAre("0.2 s", "0.5 s", "1 s", "2 s", "5 s", "10 s"));
  EXPECT_EQ(axis.place(0.2e9, 0, 100), 0);
  EXPECT_DOUBLE_EQ(axis.place(10e9, 0, 100), 100);
  EXPECT_NEAR(axis.place(1e9, 0, 100) - axis.place(0.5e9, 0, 100),
              axis.place(2e9, 0, 100) - axis.place(1e9, 0, 100), 1e-9);
  EXPECT_THAT(labels(time_range_axis(1e6, 1e9, 6)).front(), "0.001 s");
  EXPECT_THAT(labels(time_range_axis(41e9, 45e9, 4)), ElementsAre("41 s", "42 s", "43 s", "44 s", "45 s"));
  EXPECT_EQ(time_range_axis(7e6, 7e6, 4).unit, "ms");
}

TEST(Axis, DataLieWithinAndOneValueHasRoom) {
  for (double low : {-1e9, -1.0, 0.0, 1e-12, 2.5, 1e12}) {
    for (double range : {0.0, 1e-6, 1.0, 1e6}) {
      auto axis = value_axis(low, low + range, 6);
      // A tick is a multiple of the step, rounded: it may miss by less than a pixel could show.
      EXPECT_LE(axis.low, low + 1e-6 * range);
      EXPECT_GE(axis.high, low + range - 1e-6 * range);
      EXPECT_LT(axis.low, axis.high);
      EXPECT_GE(axis.ticks.size(), 2u);
      EXPECT_LE(axis.ticks.size(), 9u);
    }
  }
}

LossChart falling(std::int64_t steps) {
  LossChart chart{"a <job> & more", "4 devices", {}};
  for (std::int64_t i = 1; i <= steps; ++i) {
    double t = static_cast<double>(i) / static_cast<double>(steps);
    chart.points.push_back({i, 2 + 6 * std::exp(-5 * t) + 0.1 * std::sin(static_cast<double>(i))});
  }
  return chart;
}

TEST(LossChart, PointsStandWhereTheAxesSay) {
  LossChart chart{"job", "", {{0, 4.0}, {1, 3.0}, {2, 2.0}}};
  auto svg = to_svg(chart);
  expect_well_formed(svg);
  // The plot is 72..806 by 84..398; the axes are 0..2 and 2..4.
  EXPECT_THAT(svg, HasSubstr("<path class=\"loss\" d=\"M72.0,84.0 L439.0,241.0 L806.0,398.0\"/>"));
  EXPECT_THAT(svg, HasSubstr(">job</text>"));
}

TEST(LossChart, TextIsEscaped) {
  auto svg = to_svg(falling(10));
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("a &lt;job&gt; &amp; more"));
}

TEST(LossChart, ManyPointsStaySmall) {
  auto svg = to_svg(falling(200'000));
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 120'000u);
  EXPECT_EQ(count(svg, "class=\"each\""), 1u);
}

TEST(LossChart, ALossThatIsNotFiniteBreaksTheLine) {
  auto chart = falling(30);
  chart.points[10].loss = NAN;
  chart.points[20].loss = INFINITY;
  auto svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"loss\""), 3u);
}

TEST(LossChart, NothingOrOnePointIsAPictureToo) {
  for (const auto& points : {std::vector<LossPoint>{}, {{1, NAN}}, {{1, 2.5}}, {{1, 2.5}, {2, 2.5}}}) {
    expect_well_formed(to_svg({"job", "", points}));
  }
}

}  // namespace
}  // namespace hyperrun

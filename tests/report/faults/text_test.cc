// What faults cost, as people, programs and eyes get it.
#include "runtime/report/faults/text.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hyperrun {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

FaultStudy some_study() {
  FaultModel spec;
  spec.name = "some";
  spec.host = {.mtbf = 2000 * 3600.0, .devices = 8};
  spec.storage.bandwidth = 1e11;
  spec.spares = 8;
  spec.samples = 3;
  spec.scales = {64, 512};
  FaultStudy study =
      study_faults(spec, {.step = 10, .state_bytes = 1e12, .devices = 64, .replica = 16, .smaller_speed = 1});
  study.job = "<job>";
  return study;
}

TEST(FaultsText, SaysThatItIsSimulatedAndWhatIsAssumed) {
  const std::string text = to_text(some_study());
  EXPECT_THAT(text,
              AllOf(HasSubstr("What faults cost <job>, simulated: 3 histories of 30 days"),
                    HasSubstr("assumed"), HasSubstr("with other numbers of devices a step takes as long"),
                    HasSubstr("copies in memory"), HasSubstr("Daly")));
}

TEST(FaultsText, JsonAndCsvHaveTheSameFigures) {
  const FaultStudy study = some_study();
  const auto json = nlohmann::json::parse(to_json(study));
  EXPECT_EQ(json.at("simulated"), true);
  ASSERT_EQ(json.at("scales").size(), 2U);
  std::string csv = to_csv(study);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 6);
  for (const auto& scale : json.at("scales"))
    for (const auto& row : scale.at("policies")) {
      double sum = 0;
      for (const auto& share : row.at("shares")) sum += share.get<double>();
      EXPECT_NEAR(sum, 1, 1e-9);
      EXPECT_DOUBLE_EQ(row.at("goodput").get<double>(), row.at("shares").at("useful").get<double>());
      EXPECT_THAT(
          csv, HasSubstr(fmt::format("\n{},{},{:.6f},", scale.at("devices").get<int>(),
                                     row.at("policy").get<std::string>(), row.at("goodput").get<double>())));
    }
}

TEST(FaultsText, WithoutFaultsNothingIsInfinite) {
  FaultModel spec;
  spec.host = {.mtbf = 3e11, .devices = 8};
  spec.storage.bandwidth = 1e11;
  spec.scales = {8};
  FaultStudy study = study_faults(spec, {.step = 10, .state_bytes = 1e12, .devices = 8, .replica = 8});
  study.scales[0].mtbf = INFINITY;
  EXPECT_THAT(to_text(study), HasSubstr("never"));
  EXPECT_TRUE(nlohmann::json::parse(to_json(study)).at("scales")[0].at("seconds_between_faults").is_null());
}

TEST(FaultsText, APictureIsWholeAndEscaped) {
  const std::string svg = to_svg(some_study());
  EXPECT_THAT(svg, AllOf(HasSubstr("&lt;job&gt;"), HasSubstr("Goodput against devices"),
                         HasSubstr("interval between saves, 512 devices"), Not(HasSubstr("nan")),
                         Not(HasSubstr("inf"))));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(FaultsText, SpansHaveTheUnitThatPeopleWouldTake) {
  EXPECT_EQ(span_text(0), "0 s");
  EXPECT_EQ(span_text(0.0125), "12 ms");
  EXPECT_EQ(span_text(7.25), "7.2 s");
  EXPECT_EQ(span_text(90), "90 s");
  EXPECT_EQ(span_text(2100), "35 min");
  EXPECT_EQ(span_text(4 * 3600), "4 h");
  EXPECT_EQ(span_text(3.25 * 86400), "3.2 days");
  EXPECT_EQ(span_text(INFINITY), "never");
}

}  // namespace
}  // namespace hyperrun

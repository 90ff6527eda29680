#include "runtime/report/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/errors.h"
#include "tests/support/small_files.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

StepMetrics sample(std::int64_t step) {
  StepMetrics m;
  m.step = step;
  m.loss = 0.1 + 0.2;  // 0.30000000000000004
  m.grad_norm = 1.5;
  m.lr = 3e-4;
  m.tokens = 4096;
  m.tokens_per_second = 12345.5;
  m.step_time = Nanos(331'792'114);
  m.hbm_peak = Bytes(43'200'000);
  m.hbm_budget = Bytes(64 << 20);
  m.exposed_communication = 0.125;
  m.time = Nanos(1'769'903'999'123'456'789);
  return m;
}

TEST(Metrics, LineIsStable) {
  EXPECT_EQ(to_json_line(sample(7)),
            R"({"step":7,"loss":0.30000000000000004,"grad_norm":1.5,"lr":0.0003,"tokens":4096,)"
            R"("tokens_per_second":12345.5,"step_seconds":0.331792114,"hbm_peak_bytes":43200000,)"
            R"("hbm_budget_bytes":67108864,"exposed_communication":0.125,"time_ns":1769903999123456789})");
}

TEST(Metrics, NumbersReadBackExactly) {
  TemporaryDirectory tmp;
  std::mt19937_64 random(1);
  std::vector<StepMetrics> written;
  {
    MetricsWriter writer(tmp / "metrics.jsonl");
    for (std::int64_t step = 1; step <= 500; ++step) {
      auto m = sample(step);
      auto bits = std::bit_cast<double>(random());  // any double there is
      m.loss = std::isfinite(bits) ? bits : 0;
      m.step_time = Nanos(static_cast<std::int64_t>(random() >> 20));
      writer.write(to_json_line(m));
      written.push_back(m);
    }
  }
  EXPECT_EQ(read_metrics(tmp / "metrics.jsonl"), written);
}

TEST(Metrics, BeyondTheLimitOfFileSizesAreUnwritable) {
  const TemporaryDirectory tmp;
  MetricsWriter writer(tmp / "metrics.jsonl");
  const SmallFiles small(1000);
  const Error error = error_of([&] {
    for (std::int64_t step = 1; step <= 100; ++step) writer.write(to_json_line(sample(step)));
  });
  EXPECT_EQ(error.code(), Code::kUnwritable);
  EXPECT_THAT(error.what(),
              testing::AllOf(testing::HasSubstr("metrics.jsonl"), testing::HasSubstr("File too large"),
                             testing::HasSubstr("fix: raise the limit on the size of files")));
}

TEST(Metrics, NumbersThatAreNotFiniteAreNullAndNamed) {
  TemporaryDirectory tmp;
  auto m = sample(1);
  m.loss = std::numeric_limits<double>::quiet_NaN();
  m.grad_norm = -std::numeric_limits<double>::infinity();
  auto json = nlohmann::json::parse(to_json_line(m));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["not_finite"].dump(), R"({"grad_norm":"-inf","loss":"nan"})");

  MetricsWriter(tmp / "m").write(to_json_line(m));
  auto back = read_metrics(tmp / "m").at(0);
  EXPECT_TRUE(std::isnan(back.loss));
  EXPECT_EQ(back.grad_norm, m.grad_norm);
}

TEST(Metrics, EachLineIsInTheFileAtOnce) {
  TemporaryDirectory tmp;
  MetricsWriter writer(tmp / "m");
  writer.write(to_json_line(sample(1)));
  EXPECT_EQ(content(tmp / "m"), to_json_line(sample(1)) + '\n');
}

TEST(Metrics, ContinueAfterATornLine) {
  TemporaryDirectory tmp;
  MetricsWriter(tmp / "m").write(to_json_line(sample(1)));
  put_file(tmp / "m", content(tmp / "m") + R"({"step":2,"lo)");
  EXPECT_EQ(read_metrics(tmp / "m"), std::vector{sample(1)});
  MetricsWriter(tmp / "m").write(to_json_line(sample(2)));
  EXPECT_EQ(read_metrics(tmp / "m"), (std::vector{sample(1), sample(2)}));
}

TEST(Metrics, OfARepeatedStepTheLastCounts) {
  TemporaryDirectory tmp;
  MetricsWriter writer(tmp / "m");
  for (int step : {1, 2, 3, 4}) writer.write(to_json_line(sample(step)));
  auto again = sample(2);
  again.loss = 9;
  writer.write(to_json_line(again));
  EXPECT_EQ(read_metrics(tmp / "m"), (std::vector{sample(1), again}));
}

TEST(Metrics, ErrorsNameTheirPlace) {
  TemporaryDirectory tmp;
  EXPECT_EQ(error_of([&] { read_metrics(tmp / "none"); }).code(), Code::kMissingFile);
  put_file(tmp / "m", to_json_line(sample(1)) + "\n{\"step\":2}\n");
  auto error = error_of([&] { read_metrics(tmp / "m"); });
  EXPECT_EQ(error.code(), Code::kSyntax);
  EXPECT_EQ(error.place(), (tmp / "m").string() + ":2");
  EXPECT_EQ(error_of([&] { MetricsWriter(tmp / "none/m"); }).code(), Code::kUnwritable);
  auto full = error_of([&] { MetricsWriter("/dev/full").write(to_json_line(sample(1))); });
  EXPECT_EQ(full.code(), Code::kUnwritable);
  EXPECT_THAT(full.remedy(), ::testing::HasSubstr("free space"));
}

}  // namespace
}  // namespace hyperrun

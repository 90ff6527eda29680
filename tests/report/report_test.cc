#include "runtime/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

DeviceReport device(std::int32_t number) {
  DeviceReport d;
  d.device = number;
  d.host = "alpha";
  d.tiers = {{"hbm",
              kMiB * 64,
              kMiB * 41,
              kMiB * 41,
              {{"weights", kMiB * 5, kMiB * 5}, {"activations", kMiB * 36, kMiB * 36}, {"data", {}, {}}}}};
  d.collectives = {{"all-reduce", "tp", 1200, kMiB * 300}, {"all-reduce", "dp", 300, kMiB * 900}};
  d.transfers = {{"prefetch", "pool", 40, kMiB * 80, kMiB * 5}, {"store", "pool", 30, kMiB * 60}};
  d.streams = {{"cube", Nanos(6'000'000'000)}, {"comm", Nanos(2'500'000'000)}};
  d.time = Nanos(10'000'000'000);
  d.exposed_communication = Nanos(1'250'000'000 + number);
  return d;
}

RunReport report(int devices) {
  RunReport r;
  r.job = "quickstart";
  r.parameters = 1'234'567;
  r.tokens = 122'880;
  r.time = Nanos(10'100'000'000);
  for (int i = 0; i < devices; ++i) r.devices.push_back(device(i));
  for (int i = 1; i <= 3; ++i) r.steps.push_back({i, 0.1 * i, 1.0 / i, Nanos(3'300'000'000)});
  return r;
}

TEST(Report, JsonIsStable) {
  auto r = report(1);
  r.steps.resize(1);
  r.devices[0].tiers[0].categories.resize(1);
  r.devices[0].collectives.resize(1);
  r.devices[0].transfers.resize(1);
  r.devices[0].streams.resize(1);
  EXPECT_EQ(to_json(r), R"({
  "format": 1,
  "job": "quickstart",
  "machine": "emulated",
  "parameters": 1234567,
  "tokens": 122880,
  "time_ns": 10100000000,
  "totals": {
    "steps": 1,
    "tokens_per_second": 12166.336633663366,
    "communication_bytes": 314572800,
    "collectives": 1200,
    "exposed_communication": 0.125,
    "hbm_peak_bytes": 42991616,
    "devices_off_plan": []
  },
  "devices": [
    {
      "device": 0,
      "host": "alpha",
      "time_ns": 10000000000,
      "exposed_communication_ns": 1250000000,
      "exposed_communication": 0.125,
      "memory": [
        {
          "tier": "hbm",
          "budget_bytes": 67108864,
          "planned_peak_bytes": 42991616,
          "executed_peak_bytes": 42991616,
          "at_peak": [
            {
              "category": "weights",
              "planned_bytes": 5242880,
              "executed_bytes": 5242880
            }
          ]
        }
      ],
      "collectives": [
        {
          "collective": "all-reduce",
          "axis": "tp",
          "count": 1200,
          "bytes": 314572800
        }
      ],
      "transfers": [
        {
          "transfer": "prefetch",
          "tier": "pool",
          "count": 40,
          "bytes": 83886080,
          "other_hosts_bytes": 5242880
        }
      ],
      "streams": [
        {
          "stream": "cube",
          "busy_ns": 6000000000
        }
      ]
    }
  ],
  "steps": [
    {
      "step": 1,
      "loss": 0.1,
      "grad_norm": 1.0,
      "time_ns": 3300000000
    }
  ]
}
)");
}

TEST(Report, ReadsBackAsItWas) {
  TemporaryDirectory tmp;
  auto r = report(4);
  r.steps[1].loss = std::nullopt;
  r.devices[2].tiers[0].executed_peak += Bytes(1);
  r.devices[1].collectives[0].time = Nanos(70), r.devices[1].collectives[0].exposed = Nanos(30);
  r.paced = PacedUse{250, 3, Nanos(1000), Nanos(1020), {{"Gemm", 12, Nanos(500), Nanos(510)}}};
  r.simulated = SimulatedUse{Nanos(90),
                             12.5,
                             0.25,
                             0.375,
                             {{0, 3, Nanos(1), Nanos(2), Nanos(3), Nanos(4), Nanos(5)}},
                             {{"node", Bytes(7), Bytes(8), Bytes(9), 0.5}}};
  put_file(tmp / "report.json", to_json(r));
  EXPECT_EQ(read_report(tmp / "report.json"), r);
}

TEST(Report, SaysHowMuchOfCommunicationIsMasked) {
  auto r = report(2);
  EXPECT_THAT(to_text(r), Not(HasSubstr("masked"))) << "not known";
  for (DeviceReport& d : r.devices)
    d.collectives[0].time = Nanos(4'000'000), d.collectives[0].exposed = Nanos(1'000'000);
  const std::string text = to_text(r);
  EXPECT_THAT(text, HasSubstr("time of a device  masked"));
  EXPECT_THAT(text, HasSubstr("4.00 ms   75.0%"));
}

TEST(Report, ALossThatIsNotFiniteIsNamed) {
  auto r = report(1);
  r.steps[0].loss = NAN;
  r.steps[1].loss = INFINITY;
  auto step = nlohmann::json::parse(to_json(r))["steps"][0];
  EXPECT_TRUE(step["loss"].is_null());
  EXPECT_EQ(step["not_finite"]["loss"], "nan");
  auto back = report_from_json(to_json(r), "here");
  EXPECT_TRUE(std::isnan(*back.steps[0].loss));
  EXPECT_EQ(back.steps[1].loss, INFINITY);
}

TEST(Report, TotalsAddUp) {
  auto r = report(4);
  r.devices[2].tiers[0].executed_peak = kMiB * 50;
  auto t = totals(r);
  EXPECT_EQ(t.steps, 3);
  EXPECT_EQ(t.communication, kMiB * 1200 * 4);
  EXPECT_EQ(t.collectives, 6000);
  EXPECT_EQ(t.hbm_peak, kMiB * 50);
  EXPECT_THAT(t.off_plan, ElementsAre(2));
  EXPECT_DOUBLE_EQ(t.exposed_communication, (4 * 1.25e9 + 0 + 1 + 2 + 3) / 40e9);
}

TEST(Report, TextIsCompact) {
  auto r = report(4);
  EXPECT_EQ(to_text(r),
            R"(quickstart: 3 steps in 10.1 s on 4 emulated devices, 12,166 tokens/s
loss 0.1000 at step 1, 0.3000 at step 3

memory, peak of a device
  devices  tier  at the peak   planned  executed  of budget
  -------  ----  -----------  --------  --------  ---------
  0-3      hbm   all          41.0 MiB  41.0 MiB      64.1%
                 weights      5.00 MiB  5.00 MiB       7.8%
                 activations  36.0 MiB  36.0 MiB      56.2%

communication of all steps, bytes moved: sent, or of a message, fetched
  axis  collective  calls  of a device    of all
  ----  ----------  -----  -----------  --------
  dp    all-reduce    300      900 MiB  3.52 GiB
  tp    all-reduce  1,200      300 MiB  1.17 GiB

between HBM and what lies beyond, in all steps
  tier  transfer  times  of a device   of all  other hosts
  ----  --------  -----  -----------  -------  -----------
  pool  prefetch     40     80.0 MiB  320 MiB     20.0 MiB
  pool  store        30     60.0 MiB  240 MiB          0 B

time of all steps, share in which a stream was busy
  device  host     time   cube   comm  exposed comm
  ------  -----  ------  -----  -----  ------------
  0       alpha  10.0 s  60.0%  25.0%         12.5%
  1       alpha  10.0 s  60.0%  25.0%         12.5%
  2       alpha  10.0 s  60.0%  25.0%         12.5%
  3       alpha  10.0 s  60.0%  25.0%         12.5%
)");
}

// The two are of different moments, so the categories of equal totals may differ.
TEST(Report, TextSaysWhatRowsThatDifferAre) {
  auto r = report(4);
  EXPECT_THAT(to_text(r), Not(HasSubstr("as they")));
  CategoryUse& weights = r.devices[0].tiers[0].categories[0];
  weights.executed += kMiB;
  EXPECT_THAT(to_text(r), HasSubstr("planned with one instruction after the other, executed as they"));
}

TEST(Report, TextOfManyDevicesStaysShort) {
  auto r = report(4096);
  r.devices[7].tiers[0].executed_peak += kMiB;
  r.devices[7].exposed_communication = Nanos(9'000'000'000);
  auto text = to_text(r);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_THAT(text, HasSubstr("0-6,8-4095"));
  EXPECT_THAT(text, HasSubstr("7 (most exposed)"));
  EXPECT_THAT(text, HasSubstr("warning: devices 7 did not use the memory that was planned"));
}

TEST(Report, TextOfASimulationHasNoLoss) {
  RunReport r;
  r.job = "big";
  r.machine = "simulated";
  r.devices.resize(1);
  r.steps.push_back({1, std::nullopt, std::nullopt, Nanos(5)});
  EXPECT_EQ(to_text(r), "big: 1 step in 0 ns on 1 simulated device\n");
}

TEST(Report, BadFilesAreErrorsWithTheirPlace) {
  TemporaryDirectory tmp;
  EXPECT_EQ(error_of([&] { read_report(tmp / "report.json"); }).code(), Code::kMissingFile);
  EXPECT_EQ(error_of([&] { read_report(tmp.path()); }).code(), Code::kMissingFile) << "a directory";
  const std::string good = to_json(report(2));
  for (const auto& [from, to] : {std::pair{"\"time_ns\": ", "\"time_ns\": -"},
                                 {"\"count\": ", "\"count\": 1."},
                                 {"\"bytes\": ", "\"bytes\": 99999999999999"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string_view(from).size(), to);
    const Error error = error_of([&] { report_from_json(bad, "run/report.json"); });
    EXPECT_EQ(error.code(), Code::kSyntax) << to;
    EXPECT_EQ(error.place(), "run/report.json") << to;
  }
  for (std::string text :
       {"", "{", "[]", "{\"format\": 1}", "{\"format\": 2}", "{\"format\": 1, \"job\": 3}"}) {
    auto error = error_of([&] { report_from_json(text, "run/report.json"); });
    EXPECT_EQ(error.code(), Code::kSyntax) << text;
    EXPECT_EQ(error.place(), "run/report.json") << text;
  }
}

}  // namespace
}  // namespace hyperrun
